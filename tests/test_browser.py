"""The page in a real browser, with no network: it draws, prints and reads, and runs nothing that a log brought."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pdkit import report, store
from tests import inprocess

REPOSITORY = Path(__file__).parents[1]
SWITCHES = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND",
]  # fmt: skip
DRAWN = "document.querySelectorAll('.chart').length === document.querySelectorAll('.chart.is-live svg.marks').length"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

if CHROMIUM is None and os.environ.get("PDKIT_BROWSER_REQUIRED") != "1":
    pytest.skip("no Chromium on PATH; install it (Debian: apt install chromium)", allow_module_level=True)

sync_api = pytest.importorskip("playwright.sync_api")


FOLDED = {"sweep_review": 6, "postmortem": 6, "weekly_review": 1}  # parts that a reader opens, at least
FIRST = {"sweep_review": ("banner",), "postmortem": ("verdict", "next_steps", "watch", "windows")}
CHARTS = {"sweep_review": 6, "postmortem": 3, "weekly_review": 1}
SPLIT = "data/split-l4-qwen3-8b"
GIVEN: dict[str, tuple[str, dict[str, Any]]] = {
    "sweep_review": (SPLIT, {}),
    "postmortem": (
        f"{SPLIT}/open-loop/split",
        {
            "baseline": [f"{SPLIT}/open-loop/baseline"],
            "claim": "<b>751.85</b> beats 728.61",
            "claimed_tok_per_s": 751.85,
        },
    ),
    "weekly_review": ("", {}),
}
MARKUP = "<script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture(scope="module", params=list(GIVEN))
def name(request: pytest.FixtureRequest) -> str:
    """The report that is looked at."""
    return str(request.param)


@pytest.fixture(scope="module")
def page_file(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The split-server case, and beside it a log whose only line is markup."""
    folder = tmp_path_factory.mktemp("browser")
    evil = folder / "evil" / "bench.log"
    evil.parent.mkdir()
    evil.write_text("bash: <script>alert(1)</script><img src=x onerror=alert(2)>: No such file or directory\n", "utf-8")
    if name == "weekly_review":
        return weekly_page(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(REPOSITORY)
        suspect, said = GIVEN[name]
        paths = [suspect, str(evil)]
        return report.build(name, paths, out=folder / "out", parameters=said, engine=inprocess.NAME).html


def weekly_page(folder: Path) -> Path:
    """Of two weeks, with a note that is markup."""
    weeks = [REPOSITORY / "data" / "weekly-synthetic" / "single" / week for week in ("2026-W43", "2026-W44")]
    list(store.ingest(weeks, store.place(folder / "store"), engine=store.Engine(jobs=1)))
    notes = folder / "notes.toml"
    notes.write_text(f"[[note]]\ndate = 2026-10-26\ntext = '{MARKUP}'\n", "utf-8")
    asked = {"store": str(folder / "store"), "targets": str(notes)}
    return report.build("weekly_review", out=folder / "out", parameters=asked, engine=inprocess.NAME).html


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    assert CHROMIUM, "PDKIT_BROWSER_REQUIRED=1, but there is no Chromium on PATH"
    with sync_api.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, headless=True, args=SWITCHES)
        yield started
        started.close()


@pytest.fixture
def opened(browser: Any, page_file: Path) -> Iterator[Any]:
    """Open the page with given settings; what it asked for and complained of is kept in `page.seen`."""
    contexts = []

    def open_(**settings: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings})
        contexts.append(context)
        page = context.new_page()
        page.seen = {"requests": [], "complaints": []}
        page.on("request", lambda request: page.seen["requests"].append(request.url))
        page.on("console", lambda message: page.seen["complaints"].append(message.text))
        page.on("pageerror", lambda error: page.seen["complaints"].append(str(error)))
        page.on("dialog", lambda dialog: (page.seen["complaints"].append(dialog.message), dialog.dismiss()))
        page.goto(page_file.as_uri())
        if settings.get("java_script_enabled", True):
            page.wait_for_function(DRAWN, timeout=30_000)
        return page

    yield open_
    for context in contexts:
        context.close()


def asked_for(page: Any) -> list[str]:
    return [url for url in page.seen["requests"] if not url.startswith(("data:", "blob:"))]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_chart_is_drawn_without_a_request_or_a_complaint(opened, name, page_file, scheme):
    page = opened(color_scheme=scheme)
    assert page.locator(".chart svg.marks").count() == CHARTS[name]
    assert page.locator(".chart-still:visible").count() == 0
    assert asked_for(page) == [page_file.as_uri()]
    assert page.seen["complaints"] == []


def test_charts_have_words(opened):
    page = opened()
    words = page.eval_on_selector_all(".chart-still", "pictures => pictures.map(picture => picture.alt)")
    assert all(len(text) > 40 for text in words)
    drawn = page.eval_on_selector_all(".chart svg.marks", "them => them.map(it => it.getAttribute('aria-label'))")
    assert drawn == words


def test_a_log_line_that_is_markup_stays_text(opened):
    page = opened()
    assert page.get_by_text(MARKUP).count() >= 1
    assert page.locator("img:not(.chart-still)").count() == 0
    assert page.seen["complaints"] == []


def test_the_policy_runs_no_script_of_anybody_else(opened):
    page = opened()
    script = "const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s);"
    page.evaluate(f"() => {{ {script} }}")
    assert page.evaluate("window.ran") is None
    assert "Content Security Policy" in " ".join(page.seen["complaints"])


def test_without_scripts_the_still_pictures_stand_there(opened, name):
    page = opened(java_script_enabled=False)
    assert page.locator(".chart-still:visible").count() == CHARTS[name]
    widths = page.locator(".chart-still").evaluate_all("pictures => pictures.map(picture => picture.naturalWidth)")
    assert all(width > 100 for width in widths)


def test_on_paper_the_still_pictures_stand_in_for_the_live_ones(opened, name):
    page = opened()
    page.emulate_media(media="print")
    assert page.locator(".chart-still:visible").count() == CHARTS[name]
    assert page.locator(".chart-live:visible").count() == 0
    assert page.locator(".contents:visible").count() == 0


def test_what_is_folded_is_open_on_paper(opened, name):
    page = opened()
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open]):not(.chart-words)").count() == 0
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open]):not(.chart-words)").count() >= FOLDED[name]


@pytest.mark.parametrize("width", [1280, 768, 390, 360])
def test_the_page_never_scrolls_sideways(opened, width):
    page = opened(viewport={"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_refused_number_is_read_only_with_its_label(opened, name):
    if name not in FIRST:
        pytest.skip("a store's claimed figures are on no page")
    page = opened()
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    for section in (*FIRST[name], "measured", "doubts", "rule_table", "not_checked", "sources"):
        assert "751.85" not in page.locator(f".section-{section}").inner_text()
    assert "751.85 tok/s claimed, not measured" in page.locator(".section-no_measured_result").inner_text()


def test_the_contents_lead_to_every_section(opened):
    page = opened()
    links = page.eval_on_selector_all(".contents a", "links => links.map(link => link.getAttribute('href').slice(1))")
    assert len(links) == page.locator("main h2").count()
    assert all(page.evaluate("id => document.getElementById(decodeURIComponent(id)) !== null", link) for link in links)
    assert page.get_by_role("heading", name="No measured result", exact=False).first.is_visible()


def test_the_page_can_be_read_aloud(opened):
    """Language, one main part, one first heading, a way past the contents, and names for all that can be reached."""
    page = opened()
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.locator("main").count() == page.locator("h1").count() == 1
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    unnamed = page.eval_on_selector_all(
        "[role=region], [role=group], nav", "them => them.filter(it => !it.getAttribute('aria-label')).length"
    )
    assert unnamed == 0
