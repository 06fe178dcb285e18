"""A papermill engine that runs the cells in this process: a tenth of the time, for tests alone.

Cells share this process's modules, nothing stops one that hangs, and a crash takes the tests with it. Reports are
made in a kernel of their own; one test does that too.
"""

import contextlib
import io
import traceback
from typing import Any, ClassVar

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from nbformat.v4 import new_output
from papermill.engines import Engine, papermill_engines

NAME = "inprocess"


class _Hook(DisplayHook):
    sink: ClassVar[list[Any]] = []

    def __call__(self, result: Any = None) -> None:
        if result is None or self.quiet():
            return
        data, metadata = self.shell.display_formatter.format(result)
        self.fill_exec_result(result)
        _Hook.sink.append(
            new_output("execute_result", data=data, metadata=metadata, execution_count=self.shell.execution_count)
        )


class _Publisher(DisplayPublisher):
    def publish(self, data: Any, metadata: Any = None, **_: Any) -> None:
        _Hook.sink.append(new_output("display_data", data=data, metadata=metadata or {}))


class _Shell(InteractiveShell):
    displayhook_class = _Hook
    display_pub_class = _Publisher

    def enable_gui(self, gui: Any = None) -> None:
        """There is none."""

    def showtraceback(self, *_: Any, **__: Any) -> None:
        """The error becomes an output."""


class InProcess(Engine):
    """Runs each code cell until one fails."""

    @classmethod
    def execute_managed_notebook(cls, nb_man: Any, _kernel_name: str, **_: Any) -> None:
        InteractiveShell.clear_instance()
        _Shell.clear_instance()
        shell = _Shell.instance()
        shell.history_manager.enabled = False
        shell.display_formatter.active_types = list(shell.display_formatter.formatters)  # rich reprs, as a kernel has
        try:
            for index, cell in enumerate(nb_man.nb.cells):
                if cell.cell_type == "code" and cell.source.strip() and not cls._runs(nb_man, shell, index, cell):
                    return
        finally:
            _Shell.clear_instance()

    @staticmethod
    def _runs(nb_man: Any, shell: _Shell, index: int, cell: Any) -> bool:
        nb_man.cell_start(cell, index)
        cell.outputs = _Hook.sink = []
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            result = shell.run_cell(cell.source, store_history=True)
        cell.execution_count = shell.execution_count - 1
        error = result.error_before_exec or result.error_in_exec
        if error is None:
            nb_man.cell_complete(cell, index)
            return True
        lines = traceback.format_exception(type(error), error, error.__traceback__)
        cell.outputs.append(new_output("error", ename=type(error).__name__, evalue=str(error), traceback=lines))
        nb_man.cell_exception(cell, index, exception=error)
        return False


papermill_engines.register(NAME, InProcess)
