"""What notebooks show of tensors, modules and compiled functions."""

import re

import tenfold as tn
from tenfold import nn


def cells(html):
    return re.findall(r"<td[^>]*>([^<]*)</td>", html)


def test_a_matrix_is_a_table_shaded_by_value():
    html = tn.tensor([[0.0, 1.0], [2.5, float("nan")]])._repr_html_()
    assert cells(html) == ["0.0", "1.0", "2.5", "nan"]
    assert "f32[2,2] · cpu" in html
    assert 'rgba(68,81,216,0.42)">2.5' in html


def test_decimal_points_stand_below_each_other():
    assert cells(tn.tensor([-1.1, 0.05161, 12.0])._repr_html_()) == ["-1.1000", "0.0516", "12.0000"]
    assert cells(tn.tensor([3.0, 20.0])._repr_html_()) == ["3", "20"]
    assert cells(tn.tensor([1e-9, 2e7])._repr_html_()) == ["1e-09", "2e+07"]


def test_long_tensors_show_their_ends():
    html = tn.arange(100).reshape(1, 100)._repr_html_()
    assert cells(html) == [*map(str, range(6)), "…", *map(str, range(94, 100))]


def test_of_more_dimensions_the_first_matrix_is_shown():
    html = tn.arange(24).reshape(2, 3, 4)._repr_html_()
    assert cells(html) == [str(each) for each in range(12)]
    assert "[0, :, :]" in html


def test_scalars_truth_complex_and_halves_are_shown():
    assert cells(tn.tensor(3)._repr_html_()) == ["3"]
    assert cells(tn.tensor([True, False])._repr_html_()) == ["True", "False"]
    assert cells(tn.tensor([1 + 2j])._repr_html_()) == ["1+2j"]
    assert cells(tn.tensor([1.5], dtype=tn.bfloat16)._repr_html_()) == ["1.5"]


def test_what_has_no_data_has_a_title():
    assert cells(tn.ones(2, device="meta")._repr_html_()) == []
    assert "f32[0]" in tn.ones(0)._repr_html_()
    assert "requires_grad" in tn.ones(1, requires_grad=True)._repr_html_()
    seen = []

    @tn.compile
    def f(x):
        seen.append(x._repr_html_())
        return x + 1

    f(tn.ones(2))
    assert "f32[2]" in seen[0] and cells(seen[0]) == []


def test_modules_are_a_tree_with_their_parameters():
    class Odd(nn.Module):
        def extra_repr(self):
            return "<b>"

    html = nn.Sequential(nn.Linear(2, 3), nn.Sequential(Odd()))._repr_html_()
    assert html.count("<details") == 2
    assert "Linear(in_features=2, out_features=3, bias=True)" in html and "9 parameters" in html
    assert "Odd(&lt;b&gt;)" in html


def test_an_exported_program_shows_its_text_as_text():
    exported = tn.export(lambda x: x + 1, (tn.ones(2),), dialect="stablehlo")
    html = exported._repr_html_()
    assert "Exported stablehlo: (f32[2]) -&gt; (f32[2])" in html
    assert "stablehlo.add" in html and "tensor&lt;2xf32&gt;" in html and "tensor<" not in html


def test_a_compiled_function_shows_its_programs_and_its_guards():
    factor = 2
    scaled = tn.compile(lambda x: x * factor)
    assert "0 programs" in scaled._repr_html_() and "not called yet" in scaled._repr_html_()
    scaled(tn.ones(2))
    factor = 3
    scaled(tn.ones(2))
    html = scaled._repr_html_()
    assert "compiled &lt;lambda&gt; · 2 programs · last recompiled because " in html
    assert "for f32[2]:" in html
