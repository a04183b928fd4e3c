"""Files: round trips with PyTorch in both directions and with safetensors; saving that is whole or not."""

import collections
import io
import math
import os
import pickle
import re
import stat
import sys

import numpy as np
import pytest
import safetensors.numpy
import torch

import tenfold as tn
from tenfold.base import dtypes

NUMBERS = [0, 1, 1, 0, 1, 1]
PLAIN = {
    "none": None,
    "bools": [True, False],
    "ints": [0, 255, 256, -1, 1 << 31, -(1 << 31), 1 << 70, -(1 << 70)],
    "floats": (1.5, -0.0, math.inf, 1e-310),
    "complex": 1 - 2j,
    "text": "grüße \U0001f600",
    "bytes": bytes(range(256)),
    "empty": [(), [], {}, "", b""],
    "nested": {"a": [{"b": (1, [2])}]},
    ("a", 1): "a tuple is a key",
    7: "so is a number",
    "ordered": collections.OrderedDict(b=1, a=2),
    "counter": collections.Counter({3: 2, "a": 1}),
    "sets": [set(), {1, "b", (2, 3)}],
}


def through(obj, **options):
    file = io.BytesIO()
    tn.save(obj, file)
    file.seek(0)
    return tn.load(file, **options)


def to_torch(obj):
    file = io.BytesIO()
    tn.save(obj, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def from_torch(obj, **options):
    file = io.BytesIO()
    torch.save(obj, file, **options)
    file.seek(0)
    return tn.load(file)


def same(ours, theirs):
    """A tensor of ours, or its bytes, beside PyTorch's."""
    assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
    assert tuple(ours.shape) == tuple(theirs.shape)
    theirs = theirs.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    assert ours._host().tobytes() == bytes(theirs.view(torch.uint8).tolist())


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_every_dtype_goes_both_ways(dtype):
    theirs = torch.tensor(NUMBERS).to(getattr(torch, dtype.name)).reshape(2, 3)
    for legacy in (False, True):
        loaded = from_torch(theirs, _use_new_zipfile_serialization=not legacy)
        assert loaded.dtype is dtype
        same(loaded, theirs)
    back = to_torch({"x": loaded})["x"]
    assert back.dtype is theirs.dtype
    same(loaded, back)
    same(through(loaded), theirs)


def test_plain_data_goes_both_ways():
    expected = list(PLAIN.items())
    assert list(through(PLAIN).items()) == expected
    assert list(to_torch(PLAIN).items()) == expected
    assert list(from_torch(PLAIN).items()) == expected
    assert list(from_torch(PLAIN, _use_new_zipfile_serialization=False).items()) == expected
    assert type(through(PLAIN)["counter"]) is type(from_torch(PLAIN)["counter"]) is collections.Counter
    assert type(through(PLAIN)["ordered"]) is type(from_torch(PLAIN)["ordered"]) is collections.OrderedDict


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_is_read(protocol):
    loaded = from_torch({"x": torch.ones(2), **PLAIN}, pickle_protocol=protocol)
    assert loaded.pop("x").tolist() == [1, 1]
    assert loaded == PLAIN


def test_what_only_tensor_libraries_have():
    ours = through([tn.float32, tn.bool, tn.device("cuda:1"), tn.device("cpu"), tn.Size([2, 3])])
    assert ours == [tn.float32, tn.bool, tn.device("cuda:1"), tn.device("cpu"), tn.Size([2, 3])]
    assert type(ours[4]) is tn.Size
    theirs = [torch.float32, torch.bool, torch.device("cuda:1"), torch.device("cpu"), torch.Size([2, 3])]
    assert to_torch(ours) == theirs
    assert from_torch(theirs) == ours


def test_shapes_without_elements_or_dimensions():
    theirs = [torch.tensor(3.5), torch.zeros(0), torch.zeros(2, 0, 3), torch.tensor(True)]
    ours = from_torch(theirs)
    for mine, one, back in zip(ours, theirs, to_torch(ours)):
        same(mine, one)
        same(mine, back)


def test_views_keep_their_place_in_memory():
    base = torch.arange(24.0).reshape(4, 6)
    theirs = {
        "base": base,
        "t": base.t(),
        "part": base[1:3, ::2],
        "row": base[2],
        "wide": base[0, :1].expand(5),
    }
    for options in ({}, {"_use_new_zipfile_serialization": False}):
        ours = from_torch(theirs, **options)
        tn.eval(*ours.values())
        for name, each in theirs.items():
            same(ours[name], each)
            assert ours[name].stride() == each.stride(), name
            assert ours[name].storage_offset() == each.storage_offset(), name
    ours["row"].fill_(-1)
    base[2].fill_(-1)
    for loaded in (ours, through(ours)):
        tn.eval(*loaded.values())
        for name, each in theirs.items():
            same(loaded[name], each)
    back = to_torch(ours)
    back["base"].zero_()
    assert all(not each.any() for each in back.values())


def test_a_view_alone_brings_only_what_it_shows():
    file = io.BytesIO()
    tn.save(tn.zeros(100_000)[::1000], file)
    assert len(file.getvalue()) < 5000
    theirs = torch.zeros(1000)[3:5]
    assert from_torch(theirs).tolist() == [0, 0]
    assert from_torch(torch.arange(6).reshape(2, 3).t()).tolist() == [[0, 3], [1, 4], [2, 5]]


def test_one_object_twice_is_one_object_again():
    x, inner = tn.ones(2), [1]
    for loaded in (through({"a": x, "b": x, "c": inner, "d": inner}),):
        assert loaded["a"] is loaded["b"]
        assert loaded["c"] is loaded["d"]
    back = to_torch({"a": x, "b": x})
    assert back["a"] is back["b"]


def test_views_of_other_dtypes_are_saved_as_they_look():
    x = tn.tensor([1.0, 2.0])
    bits = x.view(tn.int32)
    again = through([x, bits])
    assert again[0].tolist() == [1, 2]
    assert again[1].tolist() == bits.tolist()


def test_conjugate_and_negative_views_of_pytorch():
    theirs = torch.tensor([1 + 2j, 3 - 4j])
    same(from_torch(theirs.conj()), theirs.conj())
    same(from_torch(theirs.conj().imag), theirs.conj().imag)


def test_gradients_wanted_and_parameters():
    theirs = {
        "x": torch.ones(2, requires_grad=True),
        "p": torch.nn.Parameter(torch.ones(3)),
        "frozen": torch.nn.Parameter(torch.ones(3), requires_grad=False),
    }
    ours = from_torch(theirs)
    for loaded in (ours, through(ours), to_torch(ours)):
        assert [each.requires_grad for each in loaded.values()] == [True, True, False]
        assert all(each.is_leaf for each in loaded.values())
        assert [type(each).__name__ for each in loaded.values()] == ["Tensor", "Parameter", "Parameter"]
    (ours["p"] * 2).sum().backward()
    assert ours["p"].grad.tolist() == [2, 2, 2]


def test_a_parameter_and_a_tensor_of_one_memory():
    parameter = torch.nn.Parameter(torch.ones(3))
    ours = from_torch([parameter, parameter.detach()])
    assert [each.requires_grad for each in ours] == [True, False]
    ours[1][0] = 5.0
    assert ours[0].tolist() == [5, 1, 1]


def test_a_module_of_pytorch():
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    ours = from_torch(module.state_dict())
    assert type(ours) is collections.OrderedDict
    for name, each in module.state_dict().items():
        same(ours[name], each)
    module.load_state_dict(to_torch(ours))


def test_an_optimizer_of_pytorch():
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.Adam([weight])
    weight.sum().backward()
    optimizer.step()
    ours = from_torch(optimizer.state_dict())
    optimizer.load_state_dict(to_torch(ours))
    assert ours["state"][0]["exp_avg"].tolist() == optimizer.state[weight]["exp_avg"].tolist()


def test_lazy_tensors_are_computed_together():
    x = tn.arange(3.0)
    assert [each.tolist() for each in through([x * 2, x + 1])] == [[0, 2, 4], [1, 2, 3]]


def test_the_same_data_makes_the_same_file():
    files = [io.BytesIO(), io.BytesIO()]
    for file in files:
        tn.save({"x": tn.arange(5)}, file)
    assert files[0].getvalue() == files[1].getvalue()


def test_a_file_of_ours_can_be_mapped_into_memory(tmp_path):
    path = tmp_path / "x.pt"
    tn.save({"a": tn.tensor([True]), "x": tn.arange(5.0)}, path)
    mapped = torch.load(path, mmap=True)
    assert mapped["x"].tolist() == [0, 1, 2, 3, 4]
    assert mapped["x"].data_ptr() % 64 == 0


def test_map_location():
    x = tn.ones(2)
    for where in ("cpu", tn.device("cpu"), {"cpu": "cpu"}, {"cuda:0": "cpu"}):
        assert through(x, map_location=where).device is tn.device("cpu")
    seen = []
    for choose in (lambda storage: storage, lambda storage: storage.cpu(), lambda storage: None):
        found = through(x, map_location=lambda storage, where, c=choose: (seen.append(where), c(storage))[1])
        assert found.device is tn.device("cpu")
    assert seen == ["cpu"] * 3
    with pytest.raises(tn.ArgumentError, match="map_location returned a str"):
        through(x, map_location=lambda storage, where: where)
    with pytest.raises(tn.DeviceError, match="unknown device 'gpu'"):
        through(x, map_location="gpu")


def test_a_tensor_of_an_unknown_device_goes_where_it_is_sent():
    file = io.BytesIO()
    tn.save(tn.ones(2), file)
    moved = io.BytesIO(swapped(file.getvalue(), b"cpu", b"xpu"))
    with pytest.raises(tn.DeviceError, match=r"the device 'xpu'(.|\n)*map_location=\"cpu\""):
        tn.load(moved)
    moved.seek(0)
    assert tn.load(moved, map_location="cpu").tolist() == [1, 1]


def swapped(contents, old, new):
    """The file with another string in its pickle."""
    import zipfile

    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(contents)) as source, zipfile.ZipFile(made, "w") as target:
        for each in source.infolist():
            record = source.read(each)
            target.writestr(
                each.filename, record.replace(old, new) if "data.pkl" in each.filename else record
            )
    return made.getvalue()


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (lambda: None, "a builtins.function cannot be saved"),
        ({"a": (each for each in [1])}, "a builtins.dict cannot be saved: cannot pickle 'generator' object"),
        (collections.namedtuple("Pair", "a b")(1, 2), "Pair cannot be saved"),
    ],
)
def test_what_cannot_be_saved_is_named(obj, message):
    with pytest.raises(tn.ArgumentError, match=message):
        tn.save(obj, io.BytesIO())


@pytest.mark.parametrize(
    "obj",
    [
        {"a": [1, frozenset([2])]}, {"a": {frozenset()}}, collections.Counter(a=0.5), {(1, (2,)): 3},
        1 << 3000,
    ],
    ids=str,
)  # fmt: skip
def test_data_that_only_pickle_has_instructions_for_is_read_by_pytorch(obj):
    file = io.BytesIO()
    tn.save(obj, file)
    file.seek(0)
    assert torch.load(file, weights_only=False) == obj


def test_data_that_holds_itself_is_saved_and_data_that_is_too_deep_is_refused():
    circle = []
    circle.append(circle)
    file = io.BytesIO()
    tn.save(circle, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    assert loaded[0] is loaded
    deep = []
    for _ in range(2000):
        deep = [deep]
    with pytest.raises(tn.ArgumentError, match="it is nested too deep"):
        tn.save(deep, io.BytesIO())


def test_nothing_can_be_saved_while_a_function_is_recorded():
    @tn.compile(fullgraph=True)
    def f(x):
        tn.save(x, io.BytesIO())
        return x

    with pytest.raises(tn.TraceError):
        f(tn.ones(2))


def test_a_whole_module_is_not_read_with_the_weights_alone(tmp_path):
    torch.save(torch.nn.Linear(2, 3), tmp_path / "x.pt")
    with pytest.raises(tn.FormatError, match=r"Linear(?s:.*)help: .*model.state_dict\(\)"):
        tn.load(tmp_path / "x.pt")


def test_errors_of_files_name_the_path_that_was_given(tmp_path):
    beyond, here = tmp_path / "none", str(tmp_path)
    cases = [
        (lambda: tn.save(1, beyond / "x.pt"), FileNotFoundError, f"Parent directory {beyond} does not exist"),
        (lambda: tn.load(beyond / "x.pt"), FileNotFoundError, f"Parent directory {beyond} does not exist"),
        (lambda: tn.load(beyond), FileNotFoundError, f"{beyond} cannot be read: there is no such file"),
        (lambda: tn.load(here), IsADirectoryError, f"{here} is a folder"),
        (lambda: tn.save(1, here), IsADirectoryError, f"{here} is a folder"),
    ]
    for case, kind, text in cases:
        with pytest.raises(tn.TenfoldError, match=re.escape(text)) as raised:
            case()
        assert isinstance(raised.value, kind)
        assert ".part" not in str(raised.value)
        assert text in str(pickle.loads(pickle.dumps(raised.value)))


@pytest.mark.parametrize("name", ["x.pt", "x.safetensors"])
def test_files_that_are_not_whole_say_what_to_do(name, tmp_path):
    path = tmp_path / name
    tn.save({"a": tn.ones(50)}, path)
    whole = path.read_bytes()
    for damaged in (b"", b"no saved file", whole[: len(whole) // 2]):
        path.write_bytes(damaged)
        with pytest.raises(tn.FormatError, match="\n  help: "):
            tn.load(path)


def test_paths(tmp_path):
    for path in (tmp_path / "a.pt", str(tmp_path / "b.bin")):
        tn.save([tn.ones(2)], path)
        assert tn.load(path)[0].tolist() == [1, 1]
    assert sorted(os.listdir(tmp_path)) == ["a.pt", "b.bin"]
    with pytest.raises(FileNotFoundError):
        tn.load(tmp_path / "none.pt")
    with pytest.raises(FileNotFoundError):
        tn.save(1, tmp_path / "none" / "x.pt")
    for wrong in (3, None, "", "a\0b"):
        with pytest.raises(tn.ArgumentError):
            tn.save(1, wrong)
        with pytest.raises(tn.ArgumentError):
            tn.load(wrong)


def test_a_file_that_cannot_seek_is_read_and_written():
    class Pipe:
        def __init__(self, contents=b""):
            self.contents = bytearray(contents)

        def write(self, data):
            self.contents += data
            return len(data)

        def flush(self):
            pass

        def read(self):
            return bytes(self.contents)

    pipe = Pipe()
    tn.save({"x": tn.ones(2)}, pipe)
    assert tn.load(pipe)["x"].tolist() == [1, 1]
    assert torch.load(io.BytesIO(pipe.contents))["x"].tolist() == [1, 1]


def test_a_failed_save_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    path = tmp_path / "x.pt"
    tn.save({"x": 1}, path)
    old = path.read_bytes()
    with pytest.raises(tn.ArgumentError):
        tn.save({"x": lambda: None}, path)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        tn.save({"x": 2}, path)
    monkeypatch.undo()
    monkeypatch.setattr(
        "zipfile.ZipFile.open", lambda *args, **kwargs: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    with pytest.raises(KeyboardInterrupt):
        tn.save({"x": 3}, path)
    monkeypatch.undo()
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == ["x.pt"]


def test_saving_keeps_permissions_and_links(tmp_path):
    target, link = tmp_path / "target.pt", tmp_path / "link.pt"
    tn.save(1, target)
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(target.stat().st_mode) == 0o666 & ~mask
    target.chmod(0o640)
    link.symlink_to(target)
    tn.save(2, link)
    assert link.is_symlink()
    assert tn.load(target) == 2
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_device_file_is_written_not_replaced():
    tn.save(1, os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


# safetensors


@pytest.mark.parametrize("dtype", [each for each in dtypes.ALL if each.name != "complex128"], ids=str)
def test_safetensors_hold_every_dtype_but_one(dtype, tmp_path):
    path = tmp_path / "x.safetensors"
    x = tn.tensor(NUMBERS).to(dtype).reshape(2, 3)
    tn.save({"x": x, "y": x[:, 1], "z": x[0, 0], "none": x[:0]}, path)
    loaded = tn.load(path)
    tn.eval(x)
    assert loaded["x"].dtype is dtype
    assert loaded["x"]._host().tobytes() == x._host().tobytes()
    assert [tuple(each.shape) for each in loaded.values()] == [tuple(loaded[k].shape) for k in loaded]
    assert {name: tuple(each.shape) for name, each in loaded.items()} == {
        "x": (2, 3), "y": (2,), "z": (), "none": (0, 3),
    }  # fmt: skip
    with open(path, "rb") as file:
        assert tn.load(file)["y"].shape == (2,)


def test_safetensors_of_others_and_their_metadata(tmp_path):
    path = tmp_path / "x.safetensors"
    safetensors.numpy.save_file({"x": np.arange(4.0)}, path, metadata={"format": "pt", "by": "ö"})
    loaded = tn.load(path)
    assert loaded["x"].tolist() == [0, 1, 2, 3]
    assert loaded.metadata == {"format": "pt", "by": "ö"}
    tn.save(loaded, path)
    with safetensors.safe_open(path, "np") as file:
        assert file.metadata() == {"format": "pt", "by": "ö"}
        assert file.get_tensor("x").tolist() == [0, 1, 2, 3]
    assert os.listdir(tmp_path) == ["x.safetensors"]


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        ([tn.ones(2)], "holds a dict of tensors, not a list"),
        ({"a": {"b": tn.ones(2)}}, "holds tensors alone, and 'a' is a dict"),
        ({1: tn.ones(2)}, "the names are strings, and 1 is not"),
        ({"a": tn.ones(2, dtype=tn.complex128)}, "safetensors has no complex128, which 'a' is of"),
    ],
)
def test_safetensors_hold_a_flat_dict_of_tensors(obj, message, tmp_path):
    with pytest.raises(tn.TenfoldError, match=message):
        tn.save(obj, tmp_path / "x.safetensors")
    assert os.listdir(tmp_path) == []


def test_without_the_package_the_error_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(tn.MissingEngine, match=r"pip install .*\[safetensors\]'"):
        tn.save({"x": tn.ones(2)}, tmp_path / "x.safetensors")


def test_a_state_dict_is_saved(tmp_path):
    model = tn.nn.Linear(2, 3)
    tn.save({"model": model.state_dict()}, tmp_path / "model.pt")
    found = torch.load(tmp_path / "model.pt")["model"]
    assert list(found) == ["weight", "bias"]
    assert model.load_state_dict(tn.load(tmp_path / "model.pt")["model"])


def _attributed(library):
    tensor, part = library.ones(2), library.zeros(1)
    tensor.note = [1, part]
    weight = library.nn.Parameter(library.ones(2))
    weight.spread = {"over": 3, "of": tensor}
    return [tensor, weight, part]


@pytest.mark.parametrize("writes, reads", [(tn, tn), (tn, torch), (torch, tn)])
def test_attributes_of_tensors_come_back(writes, reads):
    file = io.BytesIO()
    writes.save(_attributed(writes), file)
    file.seek(0)
    tensor, weight, part = reads.load(file)
    assert tensor.note[0] == 1 and tensor.note[1] is part
    assert weight.spread["over"] == 3 and weight.spread["of"] is tensor
    assert type(weight) is reads.nn.Parameter and weight.tolist() == [1, 1]


@pytest.mark.parametrize("writes, reads", [(tn, tn), (tn, torch), (torch, tn)])
def test_tensors_without_data_come_back_without_data(writes, reads):
    file = io.BytesIO()
    plain = writes.ones(2, 3, device="meta", requires_grad=True)
    parameter = writes.nn.Parameter(writes.ones(4, device="meta"))
    writes.save([plain, writes.ones(2, 3, device="meta").t(), parameter], file)
    file.seek(0)
    found = reads.load(file)
    assert [str(each.device) for each in found] == ["meta"] * 3
    assert [tuple(each.shape) for each in found] == [(2, 3), (3, 2), (4,)]
    assert [each.stride() for each in found] == [(3, 1), (1, 3), (1,)]
    assert [each.requires_grad for each in found] == [True, False, True]
    assert type(found[2]) is reads.nn.Parameter


def test_a_tensor_that_is_its_own_attribute_is_not_saved():
    tensor = tn.ones(2)
    tensor.note = tensor
    with pytest.raises(tn.ArgumentError, match="cannot be saved"):
        tn.save(tensor, io.BytesIO())
