"""What a run is called: its load point in words, and the series that it is one of."""

from collections.abc import Iterator

import polars as pl

from pdkit import results as r
from pdkit.views import finite


def level() -> pl.Expr:
    """The load point in words: `8 users`, `8 requests/s`, `offline burst`."""
    cap, rate = pl.col("concurrency"), pl.col("request_rate_per_s")
    users = pl.when(cap == 1).then(pl.lit("1 user")).otherwise(pl.format("{} users", cap.cast(pl.Int64, strict=False)))
    per_s = (
        pl.when(rate == 1)
        .then(pl.lit("1 request/s"))
        .otherwise(
            pl.format(
                "{} requests/s",
                pl.when(rate == rate.floor())
                .then(rate.cast(pl.Int64, strict=False).cast(pl.String))
                .otherwise(rate.cast(pl.String)),
            )
        )
    )
    known = (
        pl.when(cap.is_finite() & rate.is_finite()).then(pl.format("{}, at most {}", per_s, users))
        .when(cap.is_finite()).then(users)
        .when(rate.is_finite()).then(per_s)
        .when(rate.is_infinite() & cap.is_infinite()).then(pl.lit("offline burst"))
    )  # fmt: skip
    return pl.coalesce(known, pl.lit(r.NO_LEVEL))  # a number beyond all reason is no level either


def series_key() -> pl.Expr:
    """What makes two runs the same series, in words: `model=…; gpu=…; topology=…; dataset=…; level=…; client=…`.

    A part that no log states is `?`, but a precision that nobody states is left out. Of a model's path only its last
    folder counts; of a path in a cache of the Hub the model's name and revision: `Qwen/Qwen3-8B@9c925d64d723`.
    """
    model = pl.col("model").str.strip_chars_end("/")
    count = pl.format("{}x ", pl.col("gpu_count").cast(pl.Int64, strict=False)).fill_null("")
    parts = {
        "model": model.str.replace(_IN_HUB_CACHE, "$1/$2@$3").str.replace(r"^/.*/", ""),
        "precision": pl.col("precision"),
        "gpu": pl.concat_str(count, "gpu"),
        "topology": pl.col("topology"),
        "dataset": pl.format("{} {}/{} tok", pl.col("dataset").fill_null("?"), *_mean_lengths()),
        "level": pl.col("level"),
        "client": pl.format("{} {} via {}", *(pl.col(name).fill_null("?") for name in _CLIENT)),
    }
    # what separates the parts of a key is no part of one
    said = {name: part.str.replace_all(r"[;\s]+", " ").str.strip_chars() for name, part in parts.items()}
    told = [
        pl.format(f"{name}={{}}", part if name == "precision" else part.fill_null("?")) for name, part in said.items()
    ]
    return pl.concat_str(*told, separator="; ", ignore_nulls=True)


def _mean_lengths() -> Iterator[pl.Expr]:
    """Mean prompt and answer: as asked for where that is one number, else two digits: seeds differ in the third."""
    sent, each = pl.coalesce("prompts_asked", "sent"), pl.col("output_tok_asked_each")
    asked = {"input": pl.col("input_tok_asked") / sent, "output": pl.coalesce(each, pl.col("output_tok_asked") / sent)}
    for kind, mean in asked.items():
        known = pl.coalesce(finite(mean), finite(pl.col(f"{kind}_tok_per_request")))
        exact = pl.when(each.is_not_null() & (known == known.round())).then(known.cast(pl.Int64, strict=False))
        about = pl.format("~{}", known.round_sig_figs(2).cast(pl.Int64, strict=False))
        yield pl.coalesce(exact.cast(pl.String), about, pl.lit("?"))


# where huggingface_hub keeps a revision of a model: twelve digits of its hash tell it from the others
_IN_HUB_CACHE = r"^.*/models--([^/]+?)--([^/]+)/snapshots/([0-9a-f]{12})[0-9a-f]*$"
_CLIENT = ("tool", "client_definition", "backend")
