"""What pdkit says when it was called wrongly; a bug is never dressed up as one of these."""


class PdkitError(Exception):
    """A wrong call or an unusable input, in one sentence: where, what is, what would be right."""


def one_of(where: str, given: str, known: list[str]) -> PdkitError:
    """An unknown name, with the nearest right one where there is one."""
    from difflib import get_close_matches

    near = get_close_matches(given, known, n=1)
    right = f"did you mean {near[0]}?" if near else f"known: {', '.join(sorted(known)) or 'none'}"
    return PdkitError(f"{where}: {given!r} is not known; {right}")
