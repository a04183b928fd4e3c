"""The graph and the comparison of listings, in a real browser."""

import random

import pytest

import tenfold as tn
from tenfold.explain.explanation import drafted
from tenfold.explain.html import page, programs_of
from tenfold.explain.modules import watching_modules
from tenfold.runtime.calls import record_call
from tests.explain import programs
from tests.explain.browser import LIT

CLOSE_ALL = (
    "[...document.querySelectorAll('#graph .bar button')].find(b => b.textContent === 'Close all').click()"
)
OPEN_ALL = CLOSE_ALL.replace("Close", "Open")
SHOW_FLAT = """((wanted) => {
    const choice = document.getElementById('graph-stage');
    choice.value = 'flat';
    choice.dispatchEvent(new Event('change'));
})(arguments[0])"""


def test_the_graph_has_a_box_for_each_node_and_lights_with_the_panes(browser, explained):
    explanation, path = explained(programs.attend)
    browser.open(path)
    browser.click("#tab-graph")
    boxes = browser.run("document.querySelectorAll('#graph .node').length")
    assert boxes == len(explanation.nodes)
    browser.hover("#graph .node")
    assert len(browser.run(LIT)["trace"]) == 1
    assert browser.run("document.querySelectorAll('#graph .node.lit').length") == 1
    browser.run(CLOSE_ALL)
    closed = browser.run("document.querySelectorAll('#graph .node').length")
    assert closed < boxes
    browser.click("#graph .node.group")
    assert browser.run("document.querySelectorAll('#graph .node').length") > closed
    around = "page.graph.boxes.find(box => page.graph.around(box)).element"
    browser.run(f"{around}.dispatchEvent(new MouseEvent('dblclick'))")
    assert browser.run("document.querySelectorAll('#graph .node').length") == closed
    before = browser.run("page.graph.view.k")
    browser.run("page.graph.zoom(2)")
    assert browser.run("page.graph.view.k") > before
    browser.run(SHOW_FLAT)
    assert f"for {len(explanation.ops)} ops" in browser.find("#graph .bar").text


CROSSED = """page.graph.edges.filter(({ from, to, path }) => {
    const length = path.getTotalLength();
    return Array.from({ length: 60 }, (_, i) => path.getPointAtLength((length * i) / 60)).some(({ x, y }) =>
        page.graph.boxes.some((box) => box !== from && box !== to
            && Math.abs(x - box.x) < box.width / 2 && y > box.y && y < box.y + BOX.height));
}).length"""


def test_edges_of_the_graph_run_beside_the_boxes_that_they_pass(browser, tmp_path):
    def residual(x):
        for _ in range(3):
            x = x + tn.cat([x.relu(), x.sin(), x.cos()], 0).tanh()[:2]
        return x

    trace = record_call(residual, (tn.ones(2),), {}, tn.Tensor).recording.trace
    explanation = drafted(trace, trace.device, "residual", compiled=False)()
    explanation.save(tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    browser.click("#tab-graph")
    assert browser.run("page.graph.edges.length") > len(explanation.nodes)
    assert browser.run(CROSSED) == 0


STRANGERS = """[...document.querySelectorAll('#graph .frame')].filter((frame) => {
    const path = frame.dataset.path, edge = frame.getBoundingClientRect();
    return page.graph.boxes.some((box) => {
        const { left, right, top, bottom } = box.element.querySelector('rect').getBoundingClientRect();
        const inside = left < edge.right && edge.left < right && top < edge.bottom && edge.top < bottom;
        const path_of = page.graph.items[box.items[0]].path.join('.') + '.';
        return inside !== path_of.startsWith(path + '.');
    });
}).length"""
IN_SIGHT = """(() => {
    const edge = page.graph.svg.getBoundingClientRect();
    const frames = document.querySelectorAll('#graph .frame');
    return [...frames, ...page.graph.boxes.map((box) => box.element)].filter((part) => {
        const { left, right, top, bottom } = part.getBoundingClientRect();
        return left >= edge.left && right <= edge.right && top >= edge.top && bottom <= edge.bottom;
    }).length;
})()"""


def test_what_only_feeds_a_later_op_stands_above_it(browser, tmp_path):
    tn.explain(lambda x: x.exp().exp().exp() + 1, tn.ones(3)).save(tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    browser.click("#tab-graph")
    browser.run(SHOW_FLAT)
    browser.frame()
    layers = dict(browser.run("page.graph.boxes.map((box) => [box.label, box.layer])"))
    assert [layers["Add"] - layers[name] for name in ("BroadcastInDim", "Constant")] == [1, 2]


def test_open_groups_are_framed_and_all_of_a_tall_graph_can_be_seen(browser, tmp_path):
    class Block(tn.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.act = tn.nn.LayerNorm(4), tn.nn.Tanh()

        def forward(self, x):
            return x + self.act(self.norm(x) * 2)

    model = tn.nn.Sequential(*[Block() for _ in range(8)])
    with watching_modules() as paths:
        trace = record_call(lambda x: model(x).sum(), (tn.ones(2, 4),), {}, tn.Tensor).recording.trace
    drafted(trace, trace.device, "blocks", paths, compiled=False)().save(tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    browser.click("#tab-graph")
    browser.run(OPEN_ALL)
    assert browser.run("document.querySelectorAll('#graph .frame').length") >= 8
    assert browser.run(STRANGERS) == 0
    boxes, frames = browser.run("page.graph.boxes.length"), browser.run("page.graph.framed.length")
    assert browser.run(IN_SIGHT) < boxes + frames
    browser.run("page.graph.fit(true)")
    assert browser.run(IN_SIGHT) == boxes + frames
    browser.run("document.querySelector('#graph .frame-title').dispatchEvent(new MouseEvent('click'))")
    assert browser.run("page.graph.boxes.length") < boxes


FINGERS = """((moves) => {
    const box = page.graph.svg.getBoundingClientRect();
    for (const [type, pointerId, x, y] of moves) {
        const place = { clientX: box.left + x, clientY: box.top + y };
        page.graph.svg.dispatchEvent(new PointerEvent(type, { pointerId, bubbles: true, ...place }));
    }
})(arguments[0])"""


def test_two_fingers_zoom_the_graph_where_they_are(browser, explained):
    _, path = explained(programs.attend)
    browser.open(path)
    browser.click("#tab-graph")
    before = browser.run("page.graph.view")
    browser.run(FINGERS, [["pointerdown", 1, 200, 100], ["pointerdown", 2, 300, 100]])
    browser.run(FINGERS, [["pointermove", 1, 150, 100], ["pointermove", 2, 350, 100]])
    browser.run(FINGERS, [["pointerup", 1, 150, 100], ["pointerup", 2, 350, 100]])
    after = browser.run("page.graph.view")
    assert after["k"] == pytest.approx(2 * before["k"])
    middle = [(250 - view["x"]) / view["k"] for view in (before, after)]
    assert middle[0] == pytest.approx(middle[1])
    browser.run(FINGERS, [["pointermove", 1, 0, 0]])
    assert browser.run("page.graph.view") == after


def test_closing_all_groups_shows_what_is_left(browser, explained):
    _, path = explained(programs.attend)
    browser.open(path)
    browser.click("#tab-graph")
    browser.run("((graph) => { graph.view.x = -5000; graph.place(); })(page.graph)")
    assert browser.run(IN_SIGHT) == 0
    browser.run(CLOSE_ALL)
    assert browser.run(IN_SIGHT) == browser.run("page.graph.boxes.length")


def test_the_graph_stays_in_sight_when_the_window_is_resized(browser, explained):
    _, path = explained(programs.attend)
    browser.open(path)
    browser.click("#tab-graph")
    browser.size(390, 800)
    browser.frame()
    assert browser.run(IN_SIGHT) > 0


def test_a_large_graph_opens_as_far_as_it_can_be_read(browser, tmp_path):
    class Model(tn.nn.Module):
        def __init__(self):
            super().__init__()
            block = lambda: tn.nn.Sequential(*[tn.nn.Linear(4, 4), tn.nn.Tanh()] * 8)
            self.h, self.head = tn.nn.Sequential(*[block() for _ in range(8)]), tn.nn.Linear(4, 4)

        def forward(self, x):
            return self.head(self.h(x))

    model = Model()

    def step(x):
        model(x).sum().backward()
        return [param.grad for param in model.parameters()]

    with watching_modules() as paths:
        trace = record_call(step, (tn.ones(2, 4),), {}, tn.Tensor).recording.trace
    drafted(trace, trace.device, "step", paths, compiled=False)().save(tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    browser.click("#tab-graph")
    for show in ("true", SHOW_FLAT):  # whose gradient is one group of hundreds of ops
        browser.run(show)
        labels = browser.run("page.graph.boxes.filter((box) => box.group).map((box) => box.label)")
        assert {f"h.{i}" for i in range(8)} <= set(labels)
        assert browser.run("page.graph.boxes.length") <= 60


def test_boxes_of_the_graph_have_bars_of_what_they_cost(browser, explained):
    browser.open(explained(programs.product)[1])
    browser.click("#tab-graph")
    widths = """page.graph.boxes.map((box) => [box.label, Number(box.bar.getAttribute('width'))])"""
    choose = """((wanted) => {
        const choice = document.getElementById('metric');
        choice.value = wanted;
        choice.dispatchEvent(new Event('change'));
    })(arguments[0])"""
    browser.run(choose, "flops")
    shown = dict(browser.run(widths))
    assert shown["matmul"] > shown["softmax.int"] > 0


def test_search_goes_through_the_boxes_of_the_graph(browser, explained):
    browser.open(explained(programs.loop)[1])
    browser.click("#tab-graph")
    browser.press("/", "mul")
    browser.until("page.graph.found.length === 3")
    enter, places = "\ue007", []
    for _ in range(4):
        places.append(browser.run("page.graph.found.indexOf(page.graph.centred)"))
        browser.press(enter)
    assert places == [0, 1, 2, 0]


def test_two_versions_are_compared_line_by_line(browser, tmp_path):
    def before(x):
        return (x * 2).sum()

    def now(x):
        return (x * 2 + 1).sum()

    old, new = tn.explain(before, tn.ones(3)), tn.explain(now, tn.ones(3))
    programs_before = programs_of(old.html())
    (tmp_path / "page.html").write_text(
        page("now", [new.to_dict()], before=programs_before), encoding="utf-8"
    )
    browser.open(tmp_path / "page.html")
    assert browser.run("!document.getElementById('diff').hidden")
    added = "[...document.querySelectorAll('.row.added')].map(row => row.textContent)"
    browser.until("document.querySelectorAll('.row.added').length === 1")
    (line,) = browser.run(added)
    assert "aten.add" in line
    assert browser.run("document.querySelectorAll('.row.removed').length") == 0


def test_two_stages_stand_beside_each_other(browser, explained):
    explanation, path = explained(programs.loop)
    browser.open(path)
    browser.press("c")
    browser.until("document.querySelectorAll('#diff .row').length > 4")
    beside = """[...page.diff.sides.children[0].querySelectorAll('.row')].map(row => [
        row.textContent, document.getElementById(row.id.replace('left', 'right')).textContent])"""
    rows = browser.run(beside)
    assert sum("Op(" in right for _, right in rows) == len(explanation.ops)
    assert not [right for left, right in rows if "p0: f32" in left and "Op(" in right]
    assert [right for left, right in rows if "aten.mul" in left and "MultiplyOp(" in right]
    numbers = """['left', 'right'].map((side) =>
        aligned(page.program, page.program.stage('trace'), page.program.stage(arguments[0]))
            .map((row) => row[side]).filter((line) => line >= 0).sort((a, b) => a - b))"""
    for key in ("flat", "stablehlo", "hlo"):  # every line of either side is there once
        left, right = browser.run(numbers, key)
        assert left == list(range(len(explanation.stage("trace").lines)))
        assert right == list(range(len(explanation.stage(key).lines)))


@pytest.mark.parametrize(
    "function", [programs.indices, programs.train, programs.attend], ids=lambda f: f.__name__
)
def test_any_two_stages_have_each_line_once(browser, explained, function):
    explanation, path = explained(function)
    browser.open(path)
    found = browser.run("""(() => {
        const shown = page.program.stages.filter((stage) => !stage.absent), wrong = [];
        for (const left of shown) for (const right of shown) {
            const rows = aligned(page.program, left, right);
            for (const [side, stage] of [['left', left], ['right', right]]) {
                const lines = rows.map((row) => row[side]).filter((line) => line >= 0).sort((a, b) => a - b);
                const whole = lines.join() === stage.lines.map((_, i) => i).join();
                if (!whole) wrong.push([left.key, right.key, side]);
            }
        }
        return [shown.length, wrong];
    })()""")
    assert found == [sum(not stage.absent for stage in explanation.stages), []]


def test_two_stages_begin_past_the_inputs(browser, tmp_path):
    def total(*values):
        return sum(value.exp() for value in values)

    trace = record_call(total, tuple(tn.ones(2) for _ in range(40)), {}, tn.Tensor).recording.trace
    drafted(trace, trace.device, "total", compiled=False)().save(tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    browser.press("c")
    drawn = "[...document.querySelectorAll('#diff .row')].map((row) => row.textContent)"
    browser.until(f"{drawn}.some((line) => line.includes('aten.exp'))")


def test_listings_are_compared_as_difflib_does(browser, explained):
    browser.open(explained(programs.loop)[1])
    chance = random.Random(0)
    for _ in range(40):
        a, b = ([chance.choice("abcd") for _ in range(chance.randrange(12))] for _ in range(2))
        found = browser.run("matches(arguments[0], arguments[1])", a, b)
        assert all(a[i] == b[j] for i, j in found)
        assert found == sorted(found) and len({i for i, _ in found}) == len({j for _, j in found}) == len(
            found
        )
        assert len(found) == longest(a, b)


def longest(a, b):
    """The length of the longest common subsequence."""
    row = [0] * (len(b) + 1)
    for each in a:
        before = list(row)
        for j, other in enumerate(b):
            row[j + 1] = before[j] + 1 if each == other else max(before[j + 1], row[j])
    return row[-1]
