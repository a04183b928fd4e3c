"""What a compiled function says of its guards, and of why it was recorded anew."""

from __future__ import annotations

import tenfold as tn

scale = 2.0


def test_guards_are_told_in_the_user_s_words():
    factor = 3

    @tn.compile
    def scaled(x):
        return x * scale * factor

    assert scaled.guards() == "not called yet"
    scaled(tn.ones(3))
    lines = scaled.guards().splitlines()
    assert lines[0] == "for f32[3]:"
    assert "    the variable `factor` of an enclosing function is 3" in lines
    assert f"    the global `scale` of {__name__} is 2.0" in lines
    assert "recompiled" not in scaled.guards()


def test_a_changed_global_is_why_a_function_was_recompiled(monkeypatch):
    @tn.compile
    def scaled(x):
        return x * scale

    scaled(tn.ones(3))
    monkeypatch.setitem(globals(), "scale", 4.0)
    assert scaled(tn.ones(3)).tolist() == [4.0, 4.0, 4.0]
    why = f"last recompiled because the global `scale` of {__name__} was 2.0 and is 4.0"
    assert scaled.guards().splitlines()[-1] == why


def test_another_type_is_why_a_function_was_recompiled():
    double = tn.compile(lambda x: x * 2)
    double(tn.ones(3))
    double(tn.ones(4))
    why = "last recompiled because tensor 0 of the arguments was f32[3] on cpu and is f32[4] on cpu"
    assert double.guards().splitlines()[-1] == why


def test_attributes_of_modules_and_options_of_optimizers_are_named():
    model = tn.nn.Linear(3, 2)
    optimizer = tn.optim.SGD(model.parameters(), lr=0.1)

    @tn.compile
    def step(x):
        optimizer.zero_grad()
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        return loss

    step(tn.ones(4, 3))
    text = step.guards()
    assert "the attribute `training` of a Linear is True" in text
    assert "`_parameters['weight']` of a Linear is the same Parameter" in text
    assert "the options of group 0 of SGD" in text
    model.eval()
    step(tn.ones(4, 3))
    assert "the attribute `training` of a Linear was True and is False" in step.guards()


def test_an_argument_with_another_value_is_named():
    scaled = tn.compile(lambda x, k=1, options=None: x * k)
    for k in (2, 3):
        scaled(tn.ones(2), k)
    assert scaled.guards().endswith("because argument 1 was 2 and is 3")
    for sizes in ([1, 2], [1, 5]):
        scaled(tn.ones(2), options={"sizes": sizes})
    assert scaled.guards().endswith("because argument `options`['sizes'][1] was 2 and is 5")
    scaled(tn.ones(2), options={"sizes": [1]})
    assert scaled.guards().endswith("because argument `options`['sizes'] was a list of 2 and is a list of 1")
