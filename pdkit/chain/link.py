"""What a chain is: its links from cause to effect, how each is known, and one sentence on the whole."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import polars as pl

How = Literal["seen", "inferred", "not seen", "not evaluated"]
Order = Literal["in order", "out of order", "not evaluated"]
MEMORY, PREFILL_MEMORY, QUEUE = "memory short on decode", "memory short on prefill", "transfer queue filling"
REJECTED, DIED, FAILED = "first rejection", "session or server died", "first failed transfer"
NO_TEXT, END = "no text came back", "end of the logs"


@dataclass(frozen=True)
class Link:
    """One step between a cause and its effect: what happened, when it was first seen, and how that is known.

    `when` is on the server's own clock; the step began between `since` and `until`, where the log can tell. `order` is
    "out of order" where it surely began after what it would have caused, and "not evaluated" where nothing tells.
    `brief` is the clause that a sentence on the whole chain is made of.
    """

    name: str
    what: str
    how: How
    when: datetime | None = None
    since: datetime | None = None
    until: datetime | None = None
    instance: str | None = None
    role: str | None = None
    places: tuple[str, ...] = ()
    order: Order = "not evaluated"
    needs: str = ""
    brief: str = ""

    @property
    def seen(self) -> bool:
        """Whether a line of a log shows it."""
        return self.how == "seen"

    @property
    def is_cause(self) -> bool:
        """Whether it was seen or inferred, and came before what it would have caused."""
        return self.how in ("seen", "inferred") and self.order == "in order"

    @property
    def said(self) -> str:
        """What is known of it: `not evaluated: needs the decode log`, `out of order: …`."""
        if self.how == "not evaluated":
            return f"not evaluated: needs {self.needs}"
        late = "out of order, so no cause: " if self.order == "out of order" else ""
        return f"{late}{'inferred: ' if self.how == 'inferred' else ''}{self.what}"


@dataclass(frozen=True)
class Chain:
    """The links of one experiment from cause to effect, and one sentence made of those that were seen.

    No links where nothing was rejected, nothing failed and no text is missing: the sentence then says what was looked
    at. `logs` is the number of server processes that left evidence.
    """

    experiment: str | None
    title: str
    links: tuple[Link, ...]
    sentence: str
    logs: int

    @property
    def frame(self) -> pl.DataFrame:
        """One row a link, in the order of causes."""
        rows = [
            {"link": link.name, "when": link.when, "server": link.instance, "role": link.role, "what": link.said,
             "how": link.how, "order": link.order, "lines": list(link.places)}
            for link in self.links
        ]  # fmt: skip
        return pl.DataFrame(rows, schema=_FRAME)


_FRAME = pl.Schema({
    "link": pl.String(), "when": pl.Datetime("us"), "server": pl.String(), "role": pl.String(), "what": pl.String(),
    "how": pl.String(), "order": pl.String(), "lines": pl.List(pl.String()),
})  # fmt: skip
