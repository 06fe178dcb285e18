"""A notebook and logs to one report: the page, the same for machines, and the executed notebook.

papermill, nbconvert and the kernel are known here alone, and loaded only when a report is built.
"""

import ast
import base64
import hashlib
import json
import logging
import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from html import escape
from html.parser import HTMLParser
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from pdkit.errors import PdkitError, one_of

MACHINES = "application/vnd.pdkit.judgement"  # an output of this type is what NAME.json holds
VEGA = "application/vnd.vegalite.v5+json"  # what pdkit.charts draws; pictures of it come beside it
TEMPLATE = Path(__file__).parent / "report_template"
_NOTEBOOKS = (
    Path(__file__).parent / "notebooks",
    Path(__file__).parents[1] / "notebooks",
)  # of the wheel, of the repository
_SUFFIXES = (".ipynb", ".json", ".html")  # in the order in which they take their names: the page comes last
_QUIET = ["--HistoryManager.enabled=False", "--log-level=50"]  # no history file, no notice that the kernel speaks TCP
_START_S = 60  # a kernel is up in 0.6 s; without a loopback interface it never is
_INJECTED = "injected-parameters"
_HIDDEN_VALUE = "[redacted]"
_MASKED = (
    "paths",
    "baseline",
    "claim",
    "machine",
    "thresholds",
    "waivers",
    "store",
    "targets",
)  # parameters that tell of the house
_BUNDLE, _BOOT, _TOC, _HASHES = "/*@@PDKIT_VEGA@@*/", "/*@@PDKIT_BOOT@@*/", "<!--@@PDKIT_TOC@@-->", "@@PDKIT_HASHES@@"

Bundled = Callable[[Path, str, str], None]  # a file, the page, the document
Value = str | int | float | bool | None | list[Any] | dict[str, Any]


@dataclass(frozen=True)
class Parameter:
    """One parameter that a notebook declares: its default, and its type as it is written there."""

    name: str
    default: Value
    type: str

    def takes(self, value: Value) -> bool:
        """Whether a value has the declared type; without one, that of the default (anything where that is None)."""
        if not self.type:
            return self.default is None or value is None or type(value) is type(self.default)
        return any(_is(value, kind.strip()) for kind in re.sub(r"\[[^]]*\]", "", self.type).split("|"))


@dataclass(frozen=True)
class Report:
    """The three files of one report, and its evidence bundle where one was asked for."""

    html: Path
    json: Path
    notebook: Path
    bundle: Path

    @cached_property
    def verdicts(self) -> list[str]:
        """One line an experiment for a console: what it is called, and what its runs say together."""
        return [str(line) for line in json.loads(self.json.read_text("utf-8"))["conclusions"]]


class ForMachines:
    """The judgement as JSON, on its way from the notebook to NAME.json; on the page it is one line."""

    def __init__(self, text: str) -> None:
        self._text = text

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {MACHINES: self._text, "text/plain": "The same for machines: the report's .json file."}


def for_machines(text: str) -> ForMachines:
    """What NAME.json will hold: a notebook ends with `for_machines(pdkit.formats.json.text(judgement))`."""
    return ForMachines(text)


def known() -> dict[str, Path]:
    """The notebooks that a report can be made of, by name."""
    return {path.stem: path for folder in reversed(_NOTEBOOKS) for path in sorted(folder.glob("*.ipynb"))}


def title(name: str) -> str:
    """What a notebook says it is about: its metadata's title."""
    content = json.loads(_notebook(name).read_text("utf-8"))
    return str(content["metadata"].get("title", name))


def parameters_of(name: str) -> dict[str, Parameter]:
    """The parameters that a notebook declares in its cell tagged `parameters`, read without running it."""
    content = json.loads(_notebook(name).read_text("utf-8"))
    sources = ["".join(cell["source"]) for cell in content["cells"] if "parameters" in cell["metadata"].get("tags", [])]
    return {parameter.name: parameter for source in sources for parameter in _declared(source)}


def build(
    name: str,
    paths: Sequence[str | Path] = (),
    *,
    out: str | Path = "reports",
    saved_as: str | None = None,
    parameters: Mapping[str, Value] | None = None,
    bundle: bool = False,
    engine: str | None = None,
) -> Report:
    """Run a notebook on logs and write `NAME.html`, `NAME.json` and the executed `NAME.ipynb` into a folder.

    A notebook that declares no `paths` takes none. `saved_as` gives the files another name than the notebook's.
    The files take their names only when all are whole. Where the notebook fails, an older report of that name is
    removed, so that nobody takes it for this one. `bundle` adds `NAME.zip` (docs/bundle.md); without it an older one
    is removed for the same reason. `engine` is a papermill engine other than a kernel of its own.

    Raises:
        PdkitError: an unknown notebook, path or parameter, or a notebook that failed.
    """
    notebook = _notebook(name)
    given = _checked(name, paths, dict(parameters or {}))
    if bundle and "store" in given:
        raise PdkitError(f"{name}: no bundle is made of a store; make one of the logs, or keep the store itself")
    folder = _folder(Path(out))
    report = Report(*(folder / f"{_stem(saved_as or name)}{suffix}" for suffix in (".html", ".json", ".ipynb", ".zip")))
    with _none_or_whole(report):
        warm = _warmed()
        executed = _executed(notebook, given, engine=engine)
        warm.join()
        _write(report, executed, name, bundled=_bundled(notebook, given) if bundle else None)
    return report


# --- what may be asked ----------------------------------------------------------------------------------------------


def _notebook(name: str) -> Path:
    notebooks = known()
    if name not in notebooks:
        raise one_of("report", name, list(notebooks))
    return notebooks[name]


def _checked(name: str, paths: Sequence[str | Path], asked: dict[str, Value]) -> dict[str, Value]:
    """All parameters of the run, in the order in which the notebook declares them.

    papermill itself only logs an unknown parameter, and runs on with the default.
    """
    declared = parameters_of(name)
    _take_logs(name, paths, declared)
    if "paths" in asked and "paths" in declared:
        raise PdkitError(f"{name}: the logs are given twice, as paths and as the parameter 'paths'")
    for key, value in asked.items():
        if key not in declared:
            raise one_of(f"{name}: parameter", key, list(declared))
        if not declared[key].takes(value):
            right = declared[key].type or type(declared[key].default).__name__
            raise PdkitError(f"{name}: parameter {key} is {value!r}; it takes {right}")
    values = asked | {"paths": [Path(path).as_posix() for path in paths]}
    return {key: values.get(key, parameter.default) for key, parameter in declared.items()}


def _take_logs(name: str, paths: Sequence[str | Path], declared: Mapping[str, Parameter]) -> None:
    """Logs are there, and given to a notebook that takes some."""
    for path in paths:
        if not Path(path).exists():
            raise PdkitError(f"{path}: no such file or folder")
    if paths and "paths" not in declared:
        raise PdkitError(f"{name}: takes no logs, and {len(paths)} were given; what it shows names its own")
    if not paths and "paths" in declared:
        raise PdkitError(f"{name}: no logs given; name the files or folders to report on")


def _stem(name: str) -> str:
    if not name or name == ".." or Path(name).name != name:
        raise PdkitError(f"{name!r} is no name for a report; a name without folders, as in training-trainee")
    return name


def _declared(source: str) -> Iterator[Parameter]:
    """`name: type = literal`, a line each; whatever else stands in the cell is no parameter."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            yield Parameter(node.target.id, ast.literal_eval(node.value), ast.unparse(node.annotation))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield Parameter(node.targets[0].id, ast.literal_eval(node.value), "")


def _is(value: Value, kind: str) -> bool:
    if kind in ("int", "float"):
        return isinstance(value, int if kind == "int" else int | float) and not isinstance(value, bool)
    kinds: dict[str, type] = {"str": str, "bool": bool, "list": list, "dict": dict, "None": type(None)}
    return isinstance(value, kinds.get(kind, object))


def _folder(out: Path) -> Path:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise PdkitError(
            f"{out}: cannot be made a folder for reports ({problem.strerror}); name another with --out"
        ) from problem
    return out


@contextmanager
def _none_or_whole(report: Report) -> Iterator[None]:
    """An older report of the same name goes where this one was not finished."""
    files = [report.html, report.json, report.notebook, report.bundle]
    older, done = [file for file in files if file.exists()], False
    try:
        yield
        done = True
    except PdkitError as problem:
        gone = f"; the older {report.html.name} was removed with it" if older else ""
        raise PdkitError(f"{problem}; no report was written{gone}") from problem.__cause__
    finally:
        for file in () if done else (*files, *map(_unfinished, files)):
            file.unlink(missing_ok=True)


# --- the notebook runs ----------------------------------------------------------------------------------------------


def _warmed() -> threading.Thread:
    """What the page needs is loaded while the kernel works."""
    import_module("papermill")  # what both need comes first: it imports in circles

    def load() -> None:
        _exporter()
        vega_bundle()

    thread = threading.Thread(target=load, daemon=True)
    thread.start()
    return thread


def _executed(notebook: Path, parameters: Mapping[str, Value], *, engine: str | None) -> Any:
    """The notebook with its outputs, without times or folders of this machine."""
    import papermill

    logging.getLogger("papermill").setLevel(logging.ERROR)  # it warns of parameters whose types it cannot read
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    with tempfile.TemporaryDirectory(prefix="pdkit-") as ipython:
        kernel = {} if engine else {"kernel_manager_class": _own_kernel(ipython), "extra_arguments": _QUIET}
        try:
            executed = papermill.execute_notebook(
                str(notebook),
                None,
                dict(parameters),
                engine_name=engine,
                kernel_name="python3",
                progress_bar=False,
                start_timeout=_START_S,
                **kernel,
            )
        except PapermillExecutionError as problem:
            raise PdkitError(_failure(notebook, problem)) from problem
        except (CellTimeoutError, DeadKernelError) as problem:
            raise PdkitError(f"{notebook.name}: its kernel died; look at the memory of this machine") from problem
        except RuntimeError as problem:  # what nbclient raises where the kernel does not answer
            raise PdkitError(
                f"{notebook.name}: no kernel answered within {_START_S} s ({problem}); it needs the loopback interface"
            ) from problem
    return _without_traces(executed, parameters)


def _own_kernel(ipython: str) -> type:
    """The kernel of this Python, whatever kernelspec a user has installed under its name.

    It runs none of the user's start-up files, imports no module that happens to lie beside the logs, and this pdkit.
    The empty folder comes first because ipykernel drops a first entry that is the current folder.
    """
    from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager

    where = os.pathsep.join([ipython, str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])

    class OwnKernel(AsyncKernelManager):
        def _kernel_spec_manager_default(self) -> KernelSpecManager:
            return KernelSpecManager(kernel_dirs=[])

        @property
        def kernel_spec(self) -> KernelSpec | None:
            spec = super().kernel_spec
            if spec:
                spec.env = {**spec.env, "IPYTHONDIR": ipython, "PYTHONSAFEPATH": "1", "PYTHONPATH": where}
            return spec

    return OwnKernel


def _failure(notebook: Path, problem: Any) -> str:
    """A wrong call keeps its sentence; a bug says in which cell it is."""
    if problem.ename == "PdkitError":
        return str(problem.evalue)
    return f"{notebook.name}: cell {problem.cell_index + 1} failed with {problem.ename}: {problem.evalue}"


def _without_traces(executed: Any, parameters: Mapping[str, Value]) -> Any:
    shown = {
        key: _HIDDEN_VALUE if parameters.get("redact") and key in _MASKED and value else value
        for key, value in parameters.items()
    }
    executed.metadata.pop("papermill", None)
    executed.metadata["pdkit"] = {"parameters": shown}
    for cell in executed.cells:
        cell.metadata.pop("papermill", None)
        cell.metadata.pop("execution", None)
        if _INJECTED in cell.metadata.get("tags", []):
            cell["id"] = _INJECTED
            cell["source"] = "# Parameters\n" + "\n".join(f"{key} = {value!r}" for key, value in shown.items())
    return executed


# --- the files ------------------------------------------------------------------------------------------------------


def _write(report: Report, executed: Any, name: str, *, bundled: Bundled | None) -> None:
    """All under other names first; then each takes its own, and the page comes last."""
    import nbformat

    machines = _taken_out(executed, name)
    page = _page(executed)
    written: str = nbformat.writes(executed)  # type: ignore[no-untyped-call]
    texts = {report.notebook: written + "\n", report.json: machines, report.html: page}
    try:
        for file, text in texts.items():
            _unfinished(file).write_text(text, "utf-8", newline="\n")
        if bundled:
            bundled(_unfinished(report.bundle), page, machines)
            _unfinished(report.bundle).replace(report.bundle)
        else:
            report.bundle.unlink(missing_ok=True)
        for file in texts:
            _unfinished(file).replace(file)
    except OSError as problem:
        raise PdkitError(f"{problem.filename}: cannot be written ({problem.strerror})") from problem


def _bundled(notebook: Path, given: Mapping[str, Value]) -> Bundled:
    """What writes the bundle: of all files that a parameter names, since a notebook may compare two sides."""
    from pdkit.bundle import Made, write

    said = [one for value in given.values() for one in (value if isinstance(value, list) else [value])]
    paths = [one for one in said if isinstance(one, str) and one and _exists(one)]

    def written(file: Path, page: str, machines: str) -> None:
        made = Made(notebook.stem, page, machines, notebook, redacted=bool(given.get("redact")))
        write(file, made, given=paths)

    return written


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # a text that can be no path: too long, or with a NUL
        return False


def _unfinished(file: Path) -> Path:
    return file.with_name(f".{file.name}.{os.getpid()}.tmp")


def _taken_out(executed: Any, name: str) -> str:
    """The judgement for machines; the executed notebook keeps its one line of text."""
    found = [
        output.data.pop(MACHINES)
        for cell in executed.cells
        for output in cell.get("outputs", [])
        if MACHINES in output.get("data", {})
    ]
    if len(found) != 1:
        raise PdkitError(
            f"{name}: it hands over {len(found)} judgements; one cell ends with pdkit.report.for_machines(…)"
        )
    return str(found[0])


# --- the page -------------------------------------------------------------------------------------------------------


def _page(executed: Any) -> str:
    """One self-contained HTML document; a policy in its head forbids every request and every script but its own two."""
    body = str(_exporter().from_notebook_node(executed)[0])
    bundle = vega_bundle() if 'class="chart-spec"' in body else ""
    boot = (TEMPLATE / "pdkit" / "static" / "page.js").read_text("utf-8")
    digests = [hashlib.sha256(script.encode()).digest() for script in (bundle, boot)]
    allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    body = body.replace(_HASHES, allowed, 1).replace(_TOC, _contents(body), 1)
    for mark, script in ((_BOOT, boot), (_BUNDLE, bundle)):  # the last ones are the template's: a log may quote a mark
        before, _, after = body.rpartition(mark)
        body = f"{before}{script}{after}"
    return body


def _exporter() -> Any:
    from nbconvert.exporters.html import HTMLExporter
    from traitlets.config import Config

    removed = {"remove_cell_tags": {"remove-cell", _INJECTED}, "remove_all_outputs_tags": {"remove-output"}}
    config = Config(
        NbConvertBase={"display_data_priority": [VEGA, "text/html", "image/svg+xml", "image/png", "text/plain"]},
        TagRemovePreprocessor={"enabled": True, **removed},
        HTMLExporter={"exclude_input": True, "exclude_output_prompt": True, "language_code": "en"},
    )
    return HTMLExporter(  # type: ignore[no-untyped-call]
        config=config, template_name="pdkit", extra_template_basedirs=[str(TEMPLATE)]
    )


def vega_bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script (0.9 MB): 1.4 s to make, so kept in the user's cache per version."""
    import vl_convert

    version = metadata.version("vl-convert-python")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pdkit" / f"vega-{version}.js"
    with suppress(OSError):
        return cache.read_text("utf-8")
    bundle: str = vl_convert.javascript_bundle()  # type: ignore[call-arg] # its stub demands what is optional
    script = re.sub(r"</(script)", r"<\\/\1", bundle.replace("\r\n", "\n"), flags=re.IGNORECASE)
    with suppress(OSError):  # without a cache a report takes 1.4 s longer, and is the same
        cache.parent.mkdir(parents=True, exist_ok=True)
        _unfinished(cache).write_text(script, "utf-8", newline="\n")
        _unfinished(cache).replace(cache)
    return script


class _Headings(HTMLParser):
    """The second-level headings of a page, with their ids."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self._id: str | None = None
        self._text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "h2":
            self._id, self._text = dict(attrs).get("id"), ""
        elif tag == "a" and self._id:  # the anchor behind the words
            self.found.append((self._id, self._text.strip()))
            self._id = None

    def handle_data(self, data: str) -> None:
        self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "h2" and self._id:
            self.found.append((self._id, self._text.strip()))
            self._id = None


def _contents(body: str) -> str:
    headings = _Headings()
    headings.feed(body)
    items = "".join(f'<li><a href="#{escape(anchor)}">{escape(text)}</a></li>' for anchor, text in headings.found)
    return f"<ol>{items}</ol>"
