"""The page in a real browser: what lights up, pinning, search, keys, dark mode, phones."""

import threading
import time
from pathlib import Path

import pytest

import tenfold as tn
from examples.models.gpt2 import GPT2
from examples.models.resnet import resnet50
from tenfold.command.serving import Server, Watched
from tenfold.distributed import init_device_mesh
from tenfold.distributed.tensor import Shard, distribute_tensor
from tenfold.explain import runs
from tenfold.explain.explanation import drafted
from tenfold.explain.html import page
from tenfold.purple.explained import explain_purple
from tenfold.runtime.calls import record_call
from tenfold.trace.collect import collect
from tests.explain import programs
from tests.explain.browser import LIT

FIVE = (programs.product, programs.loop, programs.train_adam, programs.convolve, programs.repeat)
LIT_IN_SIGHT = """((wanted) => {
    const scroller = page.panes.panes.get(wanted).list.scroller, box = scroller.getBoundingClientRect();
    return [...scroller.querySelectorAll('.row.lit')].some((row) => {
        const { top, bottom } = row.getBoundingClientRect();
        return top >= box.top - 1 && bottom <= box.bottom + 1;
    });
})(arguments[0])"""
SCROLL = """((wanted) => {
    const scroller = page.panes.panes.get('flat').list.scroller;
    scroller.scrollTop = wanted * scroller.scrollHeight;
})(arguments[0])"""
DRAWN = "[...document.querySelectorAll('.row.lit')].map(row => row.id)"


def bring(browser, stage, line):
    """Make a line of a stage visible, and give its selector."""
    browser.run("page.panes.reveal(arguments[0])", stage)
    browser.run("page.panes.panes.get(arguments[0]).list.reveal(arguments[1])", stage, line)
    browser.frame()
    return f"#{stage}-{line}"


@pytest.mark.parametrize("function", FIVE, ids=lambda each: each.__name__)
def test_pointing_at_a_line_lights_what_came_from_it_in_every_pane(browser, explained, function):
    explanation, path = explained(function)
    browser.open(path)
    for stage in explanation.stages:
        linked = [i for i, links in enumerate(stage.links) if links]
        for line in linked[:: max(1, len(linked) // 2)][:2]:
            browser.hover(bring(browser, stage.key, line))
            expected = explanation.lit(stage.key, line)
            assert browser.run(LIT) == expected, (stage.key, line)
            drawn = {each.rpartition("-")[::2] for each in browser.run(DRAWN)}
            assert (stage.key, str(line)) in drawn
            assert all(int(number) in expected[key] for key, number in drawn)


def test_pointing_at_an_input_lights_what_reads_it(browser, explained):
    explanation, path = explained(programs.scalars)
    browser.open(path)
    for key in ("trace", "flat"):
        stage = explanation.stage(key)
        ((line, readers),) = stage.inputs
        browser.hover(bring(browser, key, line))
        lit = browser.run(LIT)
        assert lit == explanation.lit(key, line)
        assert lit[key] == [line, *[i for i, links in enumerate(stage.links) if set(links) & set(readers)]]
        assert "tanh" in stage.lines[lit[key][1]].lower() and lit["source"] and lit["stablehlo"]
        browser.hover(bring(browser, key, lit[key][1]))
        assert line not in browser.run(LIT)[key]


def test_a_click_pins_and_brings_the_others_into_sight(browser, explained):
    explanation, path = explained(programs.train_adam)
    browser.open(path)
    last = max(i for i, links in enumerate(explanation.stage("trace").links) if links)
    browser.click(bring(browser, "trace", last))
    browser.hover("#title")
    assert browser.run(LIT) == explanation.lit("trace", last)
    assert "pinned" in browser.find("#panes").get_attribute("class")
    assert browser.run(LIT_IN_SIGHT, "flat")
    browser.press("\ue00c")  # Escape
    assert browser.run(DRAWN) == []


def test_the_peak_is_told_by_what_it_is_held_for(browser, explained):
    explanation, path = explained(programs.train_adam)
    browser.open(path)
    holders = browser.run("page.program.holders.map(({ node, bytes }) => [node, bytes])")
    assert len({node for node, _ in holders if node >= 0}) == sum(node >= 0 for node, _ in holders)
    held = sum(bytes for _, bytes in holders)
    assert held + explanation.memory.arguments == max(explanation.memory.live)
    node = holders[0][0]
    assert browser.find("#memory .holders button").text.startswith(f"t{node} ")
    browser.hover("#memory .holders button")
    line = explanation.stage("trace").links.index((node,))
    assert browser.run(LIT) == explanation.lit("trace", line)


def test_search_finds_text_in_all_stages(browser, explained):
    explanation, path = explained(programs.convolve)
    browser.open(path)
    browser.press("/", "broadcast")
    hits = sum("broadcast" in line.lower() for stage in explanation.stages for line in stage.lines)
    assert hits > 2
    browser.until(f"document.getElementById('hits').textContent === '{hits} hits'")
    assert browser.run("document.querySelectorAll('.row.found').length") > 0


def test_everything_works_by_keys(browser, explained):
    explanation, path = explained(programs.loop)
    browser.open(path)
    tab, down, enter, escape = "\ue004", "\ue015", "\ue007", "\ue00c"
    for _ in range(40):
        browser.press(tab)
        if browser.run("document.activeElement.getAttribute('aria-label')?.startsWith('Trace,')"):
            break
    first = next(i for i, links in enumerate(explanation.stage("trace").links) if links)
    browser.press(*[down] * (first + 1))
    assert browser.run(LIT) == explanation.lit("trace", first)
    active = browser.run("document.activeElement.getAttribute('aria-activedescendant')")
    assert active == f"trace-{first}"
    browser.press(enter)
    assert browser.run("Boolean(page.pinned)")
    browser.press(escape)
    assert not browser.run("Boolean(page.pinned)")
    browser.press("g")
    assert browser.run("!document.getElementById('graph').hidden")
    browser.press("?")
    assert browser.run("document.getElementById('keys').open")


def test_dark_mode_follows_the_system_and_the_button(browser, explained):
    _, path = explained(programs.loop)
    brightness = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]"
    browser.colours("dark")
    browser.open(path)
    assert browser.run(brightness) < 60
    browser.click("#theme")
    assert browser.run(brightness) > 200
    browser.run("localStorage.clear()")


def test_a_phone_shows_one_pane_at_a_time(browser, explained):
    _, path = explained(programs.loop)
    browser.size(390, 800)
    browser.open(path)
    shown = "[...document.querySelectorAll('.pane')].filter(p => !p.hidden).map(p => p.dataset.stage)"
    assert browser.run(shown) == ["source"]
    browser.click("#chips [data-stage=flat]")
    assert browser.run(shown) == ["flat"]
    assert browser.run("document.documentElement.scrollWidth") <= 390


def test_a_frame_in_a_document_shows_two_panes(browser, explained):
    browser.size(680, 640)
    browser.open(explained(programs.train)[1])
    panes = "[...document.querySelectorAll('.pane')].filter(pane => pane.offsetWidth)"
    assert browser.run(f"{panes}.map(pane => pane.dataset.stage)") == ["source", "trace"]
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    assert browser.run("document.querySelector('.pane .body').clientHeight") > 200


def test_a_window_that_becomes_narrow_shows_one_pane(browser, explained):
    _, path = explained(programs.loop)
    browser.open(path)
    assert browser.run("page.panes.shown.length") > 1
    browser.size(390, 800)
    browser.until("page.panes.shown.length === 1")


WIDTHS = "page.panes.shown.map(({ pane }) => pane.offsetWidth)"


def test_panes_are_resized_by_dragging_their_border_and_by_keys(browser, explained):
    _, path = explained(programs.loop)
    browser.open(path)
    left, right, *others = browser.run(WIDTHS)
    browser.drag(".divider:not([hidden])", 90)
    assert browser.run(WIDTHS) == pytest.approx([left + 90, right - 90, *others], abs=1)
    browser.drag(".divider:not([hidden])", 700)
    assert min(browser.run(WIDTHS)) == pytest.approx(browser.run("LEAST"), abs=1)
    browser.run("document.querySelector('.divider:not([hidden])').dispatchEvent(new MouseEvent('dblclick'))")
    assert browser.run(WIDTHS) == pytest.approx([left, right, *others], abs=1)
    browser.run("page.panes.shown.at(-1).list.scroller.focus()")
    browser.press("<")
    assert browser.run(WIDTHS) == pytest.approx(
        [left, right, *others[:-2], others[-2] + 40, others[-1] - 40], abs=1
    )


HOSTILE = """
def hostile(x):
    # </script><script>globalThis.hurt = 1</script><img src=x onerror="globalThis.hurt = 2">\u2028&amp;${{1}}
    y = x + 1  # {long}
    return y, '"<b>', "<!--"
"""


def test_hostile_source_is_shown_as_text(browser, tmp_path):
    text = HOSTILE.format(long="<i>" * 3_500_000)  # 10 MB in one line
    path = tmp_path / "hostile.py"
    path.write_text(text, encoding="utf-8")
    names = {}
    exec(compile(text, str(path), "exec"), names)
    explanation = tn.explain(names["hostile"], tn.ones(2))
    explanation.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size < 200_000
    browser.open(tmp_path / "page.html")
    comment = next(i for i, line in enumerate(explanation.stage("source").lines) if "onerror" in line)
    shown = browser.run("document.getElementById(arguments[0]).textContent", f"source-{comment}")
    assert shown.endswith(explanation.stage("source").lines[comment])
    assert browser.run("globalThis.hurt === undefined && !document.querySelector('#panes img, #panes b')")


def test_text_that_turns_around_is_written_out(browser, tmp_path):
    path = tmp_path / "turned.py"
    path.write_text("def turned(x):\n    return x + 1  # \u202e} if admin { \u2066\n", encoding="utf-8")
    names = {}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    tn.explain(names["turned"], tn.ones(2)).save(tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    shown = browser.run("document.getElementById('source-1').textContent")
    assert shown.endswith(r"return x + 1  # \u202e} if admin { \u2066")


def test_the_placement_of_a_value_on_a_mesh_is_told(browser, tmp_path):
    mesh = init_device_mesh("cpu", (1,))
    x = distribute_tensor(tn.ones(2, 3), mesh, [Shard(0)]) + 1
    trace, _ = collect([x.current()])
    explanation = drafted(trace, x.current().device, "placed")()
    explanation.save(tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    assert not any("shape=" in line for key in ("trace", "flat") for line in explanation.stage(key).lines)
    browser.hover(bring(browser, "trace", explanation.lit("trace", len(trace.leaves) + 1)["trace"][0]))
    assert "[{}, {}]" in browser.find("#detail").text


@pytest.mark.slow
def test_ten_thousand_lines_draw_only_what_is_seen(browser, tmp_path):
    def long(x):
        for _ in range(2500):
            x = x.sin() + 1
        return x

    trace = record_call(long, (tn.ones(2),), {}, tn.Tensor).recording.trace
    explanation = drafted(trace, trace.device, "long", compiled=False)()
    assert len(explanation.stage("flat").lines) > 10_000
    (tmp_path / "page.html").write_text(page("long", [explanation.to_dict()]), encoding="utf-8")
    browser.open(tmp_path / "page.html")
    for share in (0.25, 0.5, 1):
        browser.run(SCROLL, share)
        browser.frame()
        drawn = browser.run("document.querySelectorAll('[data-stage=flat] .row').length")
        assert 20 < drawn < 120
    assert browser.run(
        "Boolean(document.getElementById(arguments[0]))", f"flat-{len(explanation.stage('flat').lines) - 1}"
    )


SCROLL_BY = "page.panes.panes.get(arguments[0]).list.scroller.scrollBy(0, arguments[1])"


def gpt_2():
    model = GPT2(vocabulary=512, context=64, width=96, layers=12, heads=4, dropout=0.0)
    data = tn.zeros(2, 32, dtype=tn.int64), tn.zeros(64, dtype=tn.int64)
    return model, data, lambda scores: scores.flatten(0, 1)


def resnet_50():
    return resnet50(), (tn.zeros(2, 3, 64, 64), tn.zeros(2, dtype=tn.int64)), lambda scores: scores


@pytest.mark.slow
@pytest.mark.parametrize("made", [gpt_2, resnet_50], ids=lambda made: made.__name__)
def test_the_page_of_a_training_step_opens_and_scrolls_quickly(browser, tmp_path, made):
    """In processor time of the page's thread, which a busy machine does not change."""
    model, data, flattened = made()
    optimizer = tn.optim.AdamW(model.parameters(), lr=1e-3)

    def step(x, y):
        optimizer.zero_grad()
        loss = tn.nn.functional.cross_entropy(flattened(model(x)), y)
        loss.backward()
        optimizer.step()
        return loss

    explanation = tn.explain(step, *data)
    assert all(len(explanation.stage(key).lines) > 10_000 for key in ("flat", "stablehlo", "hlo"))
    explanation.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size < 2_000_000
    browser.driver.get("about:blank")
    before = browser.computed()
    browser.open(tmp_path / "page.html")
    assert browser.computed() - before < 2
    frames = []
    for stage in ("flat", "stablehlo", "hlo"):
        browser.run("page.panes.reveal(arguments[0])", stage)
        browser.frame()
        for distance in [60] * 15 + [2000] * 15:
            before = browser.computed()
            browser.run(SCROLL_BY, stage, distance)
            browser.frame()
            frames.append(browser.computed() - before)
    assert max(frames) < 0.05


def test_runs_are_tables_on_a_page_of_their_own(browser, tmp_path):
    @tn.compile
    def thrice(x):
        return x * 3

    thrice(tn.ones(2))
    (tmp_path / "runs.html").write_text(runs.page("program.py"), encoding="utf-8")
    browser.open(tmp_path / "runs.html")
    assert "thrice" in browser.find(".runs table").text
    guards = "'\\n'.repeat(20)"
    assert browser.run(f"folded({guards}).tagName === 'DETAILS' && folded('one').tagName === 'PRE'")
    assert browser.run("document.querySelector('#title').textContent") == "program.py"


def test_a_purple_program_lights_its_owned_form_and_its_c(browser, tmp_path):
    path = tmp_path / "a.purple"
    path.write_text("(define (square x) (* x x))\n(print (square (tensor '(1.0 2.0))))\n")
    (explanation,) = explain_purple(str(path))
    explanation.save(tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    browser.hover("#source-0")
    lit = browser.run(LIT)
    assert lit == explanation.lit("source", 0)
    assert lit["owned"] and lit["c"] and lit["trace"] and lit["stablehlo"] and lit["hlo"]
    browser.click("#tab-graph")
    boxes = browser.run("document.querySelectorAll('#graph .node').length")
    assert boxes == len(explanation.nodes) - explanation.source_lines


def test_a_purple_program_without_tensors_has_its_compilers_stages(browser, tmp_path):
    path = tmp_path / "a.purple"
    path.write_text("(define (square x) (* x x))\n(print (square 3))\n")
    (explanation,) = explain_purple(str(path))
    explanation.save(tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    browser.hover("#source-0")
    assert browser.run(LIT) == explanation.lit("source", 0)
    assert browser.run("document.getElementById('tab-graph').hidden")


def test_a_served_page_is_loaded_again_when_its_file_changes(browser, tmp_path):
    path = tmp_path / "program.py"
    path.write_text("one")

    class Quick(Watched):
        def _made(self):
            return page(Path(self.path).read_text(), [old.to_dict()]).encode()

    old = tn.explain(lambda x: x + 1, tn.ones(2))
    watched = Quick(str(path))
    watched.refresh()
    with Server(watched) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser.open(server.address)
        assert browser.run("document.querySelector('#title').textContent") == "one"
        browser.until("globalThis.page !== undefined")
        time.sleep(0.7)  # until it has asked for the version
        path.write_text("two")
        watched._seen = frozenset()
        watched.refresh()
        browser.until("document.querySelector('#title').textContent === 'two'")
        server.shutdown()
    browser.driver.get("about:blank")
