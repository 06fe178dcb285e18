"""What the made-up cases share: their label, a healthy pace, manifests, and lines of a server's log.

Each case's make.py makes up its requests; `_synthetic.py`, one folder up, prints them as SGLang's client does.
"""

import random
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from math import ceil
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.dont_write_bytecode = True  # no __pycache__ among the logs

from _synthetic import WORDS, Request, Run, answered, console, tick  # noqa: E402

LABEL = "# synthetic: made up by make.py; not a recording\n"
MODEL = "Qwen/Qwen3-8B"
VERSION = "0.5.23"
STARTED = datetime(2026, 9, 7, 10, tzinfo=UTC)
DRAINED_S = 0.005  # from the last answer to the end of the run


def paced(
    rng: random.Random, *, start_s: float, input_tok: int, output_tok: int, ttft_s: float, step_s: float
) -> Request:
    """An answer whose text came back, each time a few percent off the given ones."""
    return answered(
        start_s=start_s,
        input_tok=input_tok,
        ttft_s=ttft_s * rng.triangular(0.8, 1.5, 0.95),
        itls_s=[step_s * rng.triangular(0.92, 1.15, 0.98) for _ in range(output_tok - 1)],
        words=rng.choices(WORDS, k=output_tok),
    )


def lasting(requests: Sequence[Request]) -> float:
    """How long the run took."""
    return tick(max(request.end_s for request in requests) + DRAINED_S)


def log(run: Run) -> str:
    """All that the client printed, behind the label."""
    return LABEL + console(run)


def manifest(
    label: str, run: Run, *, load: str, files: dict[str, str], started: datetime = STARTED, topology: str = "colocated"
) -> str:
    """sweep.toml of one run: its plan, its times to the whole second outwards, and who wrote which file."""
    ended = started + timedelta(seconds=ceil(run.duration_s))
    head = f'label = "{label} (synthetic)"\nsynthetic = true\nmodel = "{MODEL}"\ntopology = "{topology}"'
    level = f"[[level]]\n{load}\nprompts = {len(run.sent)}\nstarted_at = {started:{_UTC}}\nended_at = {ended:{_UTC}}"
    named = [f'[[file]]\npath = "{path}"\nrole = "{role}"' for path, role in files.items()]
    return "\n\n".join([f"# synthetic: see SOURCES.md of the case\n{head}", level, *named]) + "\n"


def client_files(
    label: str, run: Run, *, load: str, folder: str = "logs", topology: str = "colocated"
) -> dict[str, str]:
    """The client's log and its manifest, where no server left one."""
    said = manifest(label, run, load=load, files={"bench.log": "client"}, topology=topology)
    return {f"{folder}/bench.log": log(run), f"{folder}/sweep.toml": said}


_UTC = "%Y-%m-%dT%H:%M:%SZ"


def stamped(started: datetime, lines: Sequence[tuple[float, str]]) -> str:
    """A server's log: lines by their time in seconds after the start of the run."""
    ordered = sorted(lines, key=lambda line: line[0])
    told = (f"[{started + timedelta(seconds=at_s):%Y-%m-%d %H:%M:%S}] {text}\n" for at_s, text in ordered)
    return LABEL + "".join(told)


def up(*, pool_tok: int, mode: str = "null", **arguments: object) -> list[tuple[float, str]]:
    """How a server describes itself, a minute before the run."""
    said = {"model_path": MODEL, "tp_size": 1, "disaggregation_mode": mode, **arguments}
    sizes = f"max_total_num_tokens={pool_tok}, chunked_prefill_size=8192, max_prefill_tokens=16384"
    return [
        (-90.0, f"server_args={said}"),
        (-62.0, f"{sizes}, max_running_requests=2048, context_len=40960, available_gpu_mem=4.10 GB"),
        (-60.0, "The server is fired up and ready to roll!"),
    ]
