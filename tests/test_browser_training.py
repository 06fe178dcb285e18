"""The training pages in a real browser, with no network: by click, by keys, read aloud, kept, and on paper."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pdkit import casebook, report
from tests import inprocess
from tests.test_browser import REPOSITORY, asked_for, browser

__all__ = ["browser"]  # a fixture of this file too

NIGHT, RUSH = "background-log", "overload"
ANSWER = "The line that would tell is not there."


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two cases, for each audience."""
    folder = tmp_path_factory.mktemp("training")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(REPOSITORY)
        return {
            audience: report.build(
                "training", out=folder, saved_as=audience, engine=inprocess.NAME,
                parameters={"audience": audience, "cases": [NIGHT, RUSH]},
            ).html
            for audience in casebook.AUDIENCES
        }  # fmt: skip


@pytest.fixture
def context(browser: Any) -> Iterator[Any]:
    """One person's browser: what a page keeps is there when it is opened again."""
    opened = browser.new_context(viewport={"width": 1280, "height": 900})
    yield opened
    opened.close()


@pytest.fixture
def opened(context: Any, pages: dict[str, Path]):
    def open_(audience: str = "self-study", **settings: Any) -> Any:
        page = (context.browser.new_context(**settings) if settings else context).new_page()
        page.seen = {"requests": [], "complaints": []}
        page.on("request", lambda request: page.seen["requests"].append(request.url))
        page.on("console", lambda message: page.seen["complaints"].append(message.text))
        page.on("pageerror", lambda error: page.seen["complaints"].append(str(error)))
        page.goto(pages[audience].as_uri())
        return page

    return open_


def quiz(page: Any, case: str, run: str) -> Any:
    """The quiz about one run."""
    return page.locator(f"[aria-labelledby=case-{case}] form.quiz", has_text=f"The run {run}")


def choose(form: Any, verdict: str, line: str = "") -> None:
    form.get_by_role("radio", name=verdict, exact=True).check()
    if line:
        form.locator(f"input[value='{line}']").check()
    form.get_by_role("button", name="Check").click()


# --- quiz -----------------------------------------------------------------------------------------------------------


def test_a_right_verdict_with_its_line_is_right_at_once(opened):
    page = opened()
    form = quiz(page, RUSH, "rush")
    choose(form, "no measured result", "rush/bench.log:5")
    said = form.get_by_role("status").inner_text()
    assert said.startswith("Right, by rush/bench.log:5. Of 800 requests that were sent, 480 completed")
    assert page.seen["complaints"] == []
    assert asked_for(page) == [page.url]


@pytest.mark.parametrize(
    ("verdict", "line", "said"),
    [
        ("no measured result", "night/pd_bench.log:25", "Not quite."),
        ("measured", "", "Not quite."),
        ("unverified", "", "The verdict is right. By which line?"),
        ("unverified", "night/pd_bench.log:32", "The verdict is right, but another line decides it."),
        ("unverified", "night/pd_bench.log:27", "Right, by night/pd_bench.log:27."),
    ],
)
def test_the_quiz_tells_verdict_and_line_apart(opened, verdict, line, said):
    form = quiz(opened(), NIGHT, "night")
    choose(form, verdict, line)
    assert form.get_by_role("status").inner_text().startswith(said)


def test_a_wrong_guess_does_not_tell_the_answer(opened):
    form = quiz(opened(), RUSH, "rush")
    choose(form, "measured", "rush/bench.log:31")
    said = form.get_by_role("status").inner_text()
    assert "no measured result" not in said
    assert "lost" not in said


def test_nothing_chosen_is_said(opened):
    form = quiz(opened(), RUSH, "rush")
    form.get_by_role("button", name="Check").click()
    assert form.get_by_role("status").inner_text().startswith("Choose what the run is worth")


def test_another_choice_takes_the_feedback_back(opened):
    form = quiz(opened(), NIGHT, "night")
    choose(form, "unverified", "night/pd_bench.log:27")
    form.get_by_role("radio", name="measured", exact=True).check()
    assert form.get_by_role("status").inner_text() == ""


def test_the_quiz_works_by_keys_alone(opened):
    """Tab to the group, arrows within it, Tab to the lines, space on the button; then Enter from a radio."""
    page = opened()
    form = quiz(page, NIGHT, "night")
    page.locator(f"#answer-{NIGHT}").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.value") == "unverified"
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert form.get_by_role("status").inner_text().startswith("Right, by night/pd_bench.log:24.")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    assert form.get_by_role("status").inner_text() == "The verdict is right, but another line decides it."


def test_a_trainee_can_mark_but_not_check(opened):
    page = opened("trainee")
    assert page.get_by_role("button", name="Check").count() == 0
    form = quiz(page, RUSH, "calm")
    form.get_by_role("radio", name="measured", exact=True).check()
    page.keyboard.press("Enter")
    assert page.url.endswith("/trainee.html")
    assert form.get_by_role("radio", name="measured", exact=True).is_checked()
    assert page.seen["complaints"] == []


# --- answers --------------------------------------------------------------------------------------------------------


def test_answers_open_by_click_and_by_keys(opened):
    page = opened()
    case = page.locator(f"[aria-labelledby=case-{RUSH}]")
    short = case.get_by_text("the latency is the mean of those that survived")
    assert not short.is_visible()
    case.get_by_role("heading", name="Short answer").click()
    assert short.is_visible()
    wrong = case.get_by_text("A failed request moves the bar as well.")
    case.locator("summary", has_text="Wrong answers").focus()
    page.keyboard.press("Enter")
    assert not wrong.is_visible()
    case.locator("summary", has_text="The bar ran to the end").focus()
    page.keyboard.press("Space")
    assert wrong.is_visible()


def test_what_is_written_stays_in_this_browser(opened, context):
    page = opened()
    page.locator(f"#answer-{NIGHT}").fill(ANSWER)
    again = opened()
    assert again.locator(f"#answer-{NIGHT}").input_value() == ANSWER
    assert again.locator(f"#answer-{RUSH}").input_value() == ""
    assert ANSWER not in again.content()
    again.on("dialog", lambda dialog: dialog.accept())
    again.get_by_role("button", name="Clear what I wrote").click()
    assert again.get_by_role("status").first.inner_text() == "Cleared."
    assert opened().locator(f"#answer-{NIGHT}").input_value() == ""


def test_a_browser_that_keeps_nothing_says_so_and_works(context, pages):
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.add_init_script("Object.defineProperty(window, 'localStorage', {get() { throw new Error('denied'); }});")
    page.goto(pages["self-study"].as_uri())
    page.locator(f"#answer-{NIGHT}").fill(ANSWER)
    assert "keeps nothing: print the page" in page.locator(".printing").inner_text()
    choose(quiz(page, NIGHT, "night"), "unverified", "night/pd_bench.log:27")
    assert quiz(page, NIGHT, "night").get_by_role("status").inner_text().startswith("Right")
    assert complaints == []


def test_without_scripts_everything_can_be_read(opened):
    page = opened(java_script_enabled=False)
    assert page.get_by_role("button").count() == 0
    page.locator(f"[aria-labelledby=case-{NIGHT}]").get_by_role("heading", name="What each run is worth").click()
    assert page.get_by_text("there is no count of the text that came back").is_visible()


def test_a_scoring_sheet_adds_up_by_click_and_by_keys(opened):
    page = opened("interviewer")
    sheet = page.locator(f"[aria-labelledby=case-{RUSH}] .score")
    points = sheet.get_by_label("Points", exact=True)
    boxes = sheet.get_by_role("checkbox")
    assert points.inner_text() == "0"
    boxes.nth(0).check()
    boxes.nth(1).focus()
    page.keyboard.press("Space")
    assert points.inner_text() == "2"
    sheet.get_by_role("checkbox", name="Larger batches made it faster.").check()
    assert points.inner_text() == "1"
    assert "of 11 points" in sheet.inner_text()  # two verdicts, six steps, three follow-ups


# --- paper, and reading aloud ---------------------------------------------------------------------------------------


def printed(page: Any, button: str) -> None:
    """Press a print button and leave the page as it would be on paper."""
    page.evaluate("window.print = () => window.dispatchEvent(new Event('beforeprint'))")
    page.get_by_role("button", name=button).click()
    page.emulate_media(media="print")


def test_it_prints_as_a_question_sheet(opened):
    page = opened()
    page.locator(f"#answer-{NIGHT}").fill(ANSWER)
    choose(quiz(page, NIGHT, "night"), "unverified", "night/pd_bench.log:27")
    printed(page, "Print the question sheet")
    assert page.locator(".answers:visible, .feedback:visible, .printing:visible, button:visible").count() == 0
    assert page.locator("textarea:visible").count() == 2
    assert page.locator(".viewer:visible").count() == 3
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    assert page.locator(".answers:visible").count() == 2
    assert page.locator("details[open]").count() == 0


@pytest.mark.parametrize("audience", ["self-study", "interviewer"])
def test_it_prints_as_an_answer_sheet(opened, audience):
    page = opened(audience)
    printed(page, "Print the answer sheet")
    assert page.get_by_text("the latency is the mean of those that survived").is_visible()
    assert page.get_by_text("A failed request moves the bar as well.").is_visible()
    assert page.locator(".printing:visible").count() == 0


def test_each_case_begins_a_page(opened):
    page = opened("trainee")
    page.emulate_media(media="print")
    breaks = page.locator("article.case").evaluate_all("them => them.map(it => getComputedStyle(it).breakBefore)")
    assert breaks == ["auto", "page"]


@pytest.mark.parametrize("audience", casebook.AUDIENCES)
@pytest.mark.parametrize("width", [1280, 768, 390, 360])
def test_the_page_never_scrolls_sideways(opened, audience, width):
    page = opened(audience, viewport={"width": width, "height": 900})
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("audience", casebook.AUDIENCES)
def test_everything_has_a_name_for_a_screen_reader(opened, audience):
    page = opened(audience)
    assert page.locator("main").count() == page.locator("h1").count() == 1
    assert page.locator(".contents a").count() == page.locator("main h2").count() == 2
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("input, textarea, [role=region], form, fieldset, article, .score")]
        .filter(it => !(it.labels && it.labels.length) && !it.getAttribute("aria-label")
            && !it.getAttribute("aria-labelledby") && !it.querySelector("legend")).length"""
    )
    assert unnamed == 0
    if audience != "interviewer":
        assert page.get_by_role("group", name="The run rush, at 10 requests/s, is:").count() == 1
        assert page.get_by_label("Your answer").count() == 2
    assert page.get_by_role("region", name="Lines of rush/bench.log").get_by_role("listitem").count() > 10


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_can_be_read_on_either_ground(opened, scheme):
    """Contrast of at least 4.5 between text and paper, of all that the training page adds."""
    page = opened(color_scheme=scheme)
    choose(quiz(page, NIGHT, "night"), "measured")
    for what in (".lines li", ".lines mark", ".viewer figcaption", ".question", ".level", ".feedback", "button"):
        assert page.locator(what).first.evaluate(CONTRAST) >= 4.5, what


CONTRAST = """it => {
  const light = colour => {
    const parts = colour.match(/[\\d.]+/g).slice(0, 3).map(part => part / 255)
      .map(part => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const isClear = it => /rgba\\(.*, 0\\)|transparent/.test(getComputedStyle(it).backgroundColor);
  let ground = it;
  while (isClear(ground)) ground = ground.parentElement;
  const [one, other] = [light(getComputedStyle(it).color), light(getComputedStyle(ground).backgroundColor)];
  return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
}"""
