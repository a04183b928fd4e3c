"""Files that are damaged or meant to harm: an error, nothing run, no memory beyond the file's own size."""

import collections
import io
import os
import pickle
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings, strategies as st

import tenfold as tn


def number(value):
    return b"\x8a\x08" + struct.pack("<q", value)


def archive(pickled, storages=(bytes(24),), name="archive", **options):
    """A zip archive around a pickle."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", **options) as zipped:
        zipped.writestr(f"{name}/data.pkl", pickled)
        for i, each in enumerate(storages):
            zipped.writestr(f"{name}/data/{i}", each)
        zipped.writestr(f"{name}/version", b"3\n")
    return file.getvalue()


def tensor_pickle(offset=0, shape=(2, 3), strides=(3, 1), size=6, kind=b"torch\nFloatStorage"):
    storage = b"(X\x07\0\0\0storagec" + kind + b"\nX\x01\0\0\x000X\x03\0\0\0cpu" + number(size) + b"tQ"
    numbers = lambda values: b"(" + b"".join(number(each) for each in values) + b"t"
    rest = number(offset) + numbers(shape) + numbers(strides) + b"\x89N"
    return b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + storage + rest + b"tR."


def load(contents):
    return tn.load(io.BytesIO(contents))


def valid():
    file = io.BytesIO()
    x = torch.arange(6.0).reshape(2, 3)
    torch.save({"x": x, "t": x.t(), "p": torch.nn.Parameter(x), "b": b"\xff", "n": [1, (2.5, None)]}, file)
    return file.getvalue()


def valid_legacy():
    file = io.BytesIO()
    x = torch.arange(6.0).reshape(2, 3)
    torch.save({"x": x, "t": x.t(), "n": [1, "a"]}, file, _use_new_zipfile_serialization=False)
    return file.getvalue()


def valid_safetensors():
    import safetensors.numpy

    return safetensors.numpy.save({"x": np.arange(6.0), "y": np.ones((2, 0))}, metadata={"a": "b"})


FILES = {"zip": valid(), "legacy": valid_legacy(), "safetensors": valid_safetensors()}


def test_the_hand_written_file_is_whole():
    assert load(archive(tensor_pickle())).tolist() == [[0, 0, 0], [0, 0, 0]]


class Harm:
    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call[0], self.call[1:]


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
@pytest.mark.parametrize("form", ["zip", "legacy", "bare"])
def test_a_file_that_calls_the_system_is_not_run(protocol, form, tmp_path):
    trace = tmp_path / "trace"
    harm = pickle.dumps({"x": Harm(os.system, f"touch {trace}")}, protocol)
    if form == "zip":
        contents = archive(harm)
    elif form == "legacy":
        head = b"".join(
            pickle.dumps(each, 2) for each in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})
        )
        contents = head + harm
    else:
        contents = harm
    with pytest.raises(tn.FormatError) as raised:
        load(contents)
    assert not trace.exists()
    if protocol == 2:
        assert "posix.system, which is neither a tensor nor plain data" in str(raised.value)


@pytest.mark.parametrize(
    "call", [(eval, "1"), (exec, "1"), (getattr, [], "append"), (open, "/dev/null"), (print, "x"),
             (list, [1]), (np.zeros, 3), (collections.deque, "a"), (torch.zeros, 3), (tn.manual_seed, 3)],
    ids=lambda call: call[0].__name__,
)  # fmt: skip
def test_only_the_names_of_the_list_are_known(call):
    for protocol in (2, 4):
        with pytest.raises(tn.FormatError, match="neither a tensor nor plain data"):
            load(archive(pickle.dumps(Harm(*call), protocol)))


@pytest.mark.parametrize(
    ("pickled", "message"),
    [
        (b"\x80\x02ccollections\nOrderedDict\n.", "collections.OrderedDict in the place of data"),
        (b"\x80\x02ctorch\nFloatStorage\n.", "bare storage in the place of data"),
        (b"\x80\x02X\x01\0\0\0a)R.", "calls what cannot be called"),
        (b"\x80\x02ctorch\nfloat32\n)R.", "calls what cannot be called"),
        (b"\x80\x02ccollections\nOrderedDict\n]R.", "calls what cannot be called"),
        (b"\x80\x02]}X\x01\0\0\0aK\x01sb.", "sets attributes of what has none"),
        (b"\x80\x02ctorch\nFloatStorage\n}b.", "sets attributes of what has none"),
        (b"\x80\x02}K\x01a.", "appends to what is no list"),
        (b"\x80\x02](K\x01\x90.", "adds to what is no set"),
        (b"\x80\x02\x8f(]\x90.", "has a list as a key"),
        (b"\x80\x02c__builtin__\nset\n}\x85R.", "not made of a list"),
        (b"\x80\x02ccollections\nCounter\n}K\x01Ns\x85R.", "does not count"),
        (b"\x80\x02]K\x01K\x02s.", "fills what is no dict"),
        (b"\x80\x02}(K\x01u.", "fills what is no dict"),
        (b"\x80\x02}]K\x01s.", "has a list as a key"),
        (b"\x80\x02K\x01Q.", "other than a storage"),
        (b"\x80\x02h\x07.", "makes no sense"),
        (b"\x80\x02t.", "makes no sense"),
        (b"\x80\x02a.", "makes no sense"),
        (b"\x80\x02.", "makes no sense"),
        (b"\x80\x02", "cut short"),
        (b"\x80\x02X\xff\xff\xff\xffa.", "cut short"),
        (b"\x80\x02\x8d\xff\xff\xff\xff\xff\xff\xff\xffa.", "cut short"),
        (b"\x80\x02X\x01\0\0\0\xff.", "makes no sense"),
        (b"\x80\x02\x8b\xff\xff\xff\x7fa.", "an integer of"),
        (b"\x80\x09N.", "protocol 9"),
        (b"\x80\x02\x82\x01.", "which is no data"),
        (b"\x80\x02cos", "a name in its pickle has no end"),
        (b"\x80\x02]]\x93.", "is no string"),
        (b"\x80\x02]q\0h\0a.", "hold themselves"),
        (b"\x80\x02" + b"]" * 200_000 + b"a" * 199_999 + b".", "nested over 100 deep"),
        (b"\x80\x02" + b")" + b"\x85" * 200_000 + b".", "nested over 100 deep"),
        (b"\x80\x02}" + b")" + b"\x85" * 200_000 + b"Ns.", "has a tuple as a key"),
        (b"\x80\x02ctorch\ndevice\n" + b")" + b"\x85" * 100_001 + b"R.", "not made of a name and a number"),
        (b"\x80\x02ctorch\nSize\nX\x01\0\0\0a\x85R.", "not made of numbers"),
        (b"\x80\x02c_codecs\nencode\nX\x01\0\0\0aX\x05\0\0\0rot13\x86R.", "other than latin1"),
    ],
)  # fmt: skip
def test_pickles_that_are_no_data(pickled, message):
    with pytest.raises(tn.FormatError, match=message):
        load(archive(pickled))


@pytest.mark.parametrize(
    "wrong",
    [
        {"size": 7},
        {"size": 1 << 40},
        {"size": -6},
        {"shape": (2, 4)},
        {"shape": (-2, -3)},
        {"shape": (2,)},
        {"shape": (1 << 62, 1 << 62), "strides": (0, 0)},
        {"shape": (0, 1 << 62, 1 << 62)[1:] + (0,), "strides": (1, 1, 1)},
        {"offset": 1},
        {"offset": -1},
        {"offset": (1 << 63) - 1},
        {"strides": (-3, 1)},
        {"strides": (4, 1)},
        {"strides": (1 << 62, 1)},
        {"shape": (1,) * 65, "strides": (1,) * 65},
        {"kind": b"torch\nDoubleStorage"},
        {"kind": b"torch\nfloat32"},
        {"kind": b"torch.storage\nUntypedStorage"},
    ],
    ids=str,
)
def test_tensors_that_reach_beyond_their_storage(wrong):
    with pytest.raises(tn.FormatError):
        load(archive(tensor_pickle(**wrong)))


def test_a_tensor_that_repeats_one_element_takes_no_memory():
    loaded = load(archive(tensor_pickle(shape=(1 << 40,), strides=(0,))))
    assert loaded.shape == (1 << 40,)


def test_a_storage_that_is_not_there():
    with pytest.raises(tn.FormatError, match="has no record 'data/0'"):
        load(archive(tensor_pickle(), storages=()))
    with pytest.raises(tn.FormatError, match="has 20 bytes where 24 are announced"):
        load(archive(tensor_pickle(), storages=(bytes(20),)))


def test_a_bool_of_any_byte_is_a_bool():
    loaded = load(archive(tensor_pickle(kind=b"torch\nBoolStorage"), storages=(bytes([0, 1, 2, 255, 0, 3]),)))
    assert loaded.tolist() == [[False, True, True], [True, False, True]]
    assert loaded.sum().item() == 4


def test_a_compressed_record_is_refused():
    bomb = archive(tensor_pickle(size=1 << 24), (bytes(1 << 26),), compression=zipfile.ZIP_DEFLATED)
    assert len(bomb) < 1 << 18
    with pytest.raises(tn.FormatError, match="claim to be longer than the file"):
        load(bomb)
    with pytest.raises(tn.FormatError, match="compressed or encrypted"):
        load(archive(tensor_pickle() + bytes(10_000), compression=zipfile.ZIP_DEFLATED) + bytes(20_000))


def test_other_zip_files_are_refused():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zipped:
        zipped.writestr("readme.txt", "hello")
    with pytest.raises(tn.FormatError, match="it does not have one record data.pkl"):
        load(file.getvalue())
    script = io.BytesIO()
    with zipfile.ZipFile(script, "w") as zipped:
        for name in ("data.pkl", "constants.pkl"):
            zipped.writestr(f"model/{name}", b"\x80\x02N.")
    with pytest.raises(tn.UnsupportedError, match="TorchScript"):
        load(script.getvalue())


@pytest.mark.parametrize("contents", [b"", b"P", b"PK", b"hello, world", b"\x80", b"\x80\x02N.", bytes(100)])
def test_what_is_no_saved_file(contents, tmp_path):
    with pytest.raises(tn.FormatError):
        load(contents)
    for name in ("x.pt", "x.safetensors"):
        (tmp_path / name).write_bytes(contents)
        with pytest.raises(tn.FormatError):
            tn.load(tmp_path / name)


@pytest.mark.parametrize(
    "pickled",
    [
        # A long string, encoded again and again.
        b"\x80\x02c_codecs\nencode\nq\0X\xa0\x86\1\0" + b"a" * 100_000 + b"q\1X\6\0\0\0latin1q\2"
        + b"](" + b"h\0h\1h\2\x86R" * 50_000 + b"e.",
        # A long list of pairs, made a dict again and again.
        b"\x80\x02ccollections\nOrderedDict\nq\0](" + b"K\1K\2\x86" * 50_000 + b"eq\1"
        + b"](" + b"h\0h\1\x85R" * 50_000 + b"e.",
        # A long tuple, made a key again and again.
        b"\x80\x02(" + b"K\1" * 50_000 + b"tq\1}(" + b"h\1N" * 50_000 + b"u.",
        # Each tuple twice the one before: of no size, but endless to whoever walks all of it.
        b"\x80\x02)" + b"q\0h\0\x86" * 90 + b"q\0}h\0Ns.",
        # A number for the memo that an array would have to be grown for.
        b"\x80\x02Nr\xff\xff\xff\xff0h\0.",
    ],
    ids=["encode", "OrderedDict", "key", "tuples", "memo"],
)  # fmt: skip
def test_a_small_file_does_not_unfold(pickled):
    contents = archive(pickled)
    tracemalloc.start()
    try:
        with pytest.raises(tn.FormatError):
            load(contents)
        assert tracemalloc.get_traced_memory()[1] < 100 * len(contents) + (1 << 20)
    finally:
        tracemalloc.stop()


def test_what_is_shared_is_visited_once():
    doubled = load(archive(b"\x80\x02)" + b"q\0h\0\x86" * 90 + b"."))
    for _ in range(90):
        assert doubled[0] is doubled[1]
        doubled = doubled[0]
    assert doubled == ()


MUTATIONS = st.lists(
    st.tuples(
        st.sampled_from(["set", "cut", "insert", "double"]), st.integers(0, 1 << 16), st.integers(0, 255)
    ),
    min_size=1,
    max_size=6,
)


def mutated(contents, mutations):
    contents = bytearray(contents)
    for kind, place, byte in mutations:
        place %= max(len(contents), 1)
        if kind == "set" and contents:
            contents[place] = byte
        elif kind == "cut":
            del contents[place : place + byte]
        elif kind == "insert":
            contents.insert(place, byte)
        elif kind == "double":
            contents[place:place] = contents[place : place + byte]
    return bytes(contents)


def attempt(contents):
    """Load a damaged file: it may still be whole, but what is raised is Tenfold's or the system's."""
    try:
        return load(contents)
    except (tn.TenfoldError, OSError):
        return None


@pytest.mark.parametrize("form", FILES)
@given(mutations=MUTATIONS)
@settings(max_examples=400, deadline=None)
def test_damage_is_an_error_and_nothing_else(form, mutations):
    attempt(mutated(FILES[form], mutations))


def inner_pickle():
    with zipfile.ZipFile(io.BytesIO(FILES["zip"])) as zipped:
        return zipped.read("archive/data.pkl")


PICKLE = inner_pickle()


@given(mutations=MUTATIONS)
@settings(max_examples=800, deadline=None)
@example(mutations=[("cut", 0, 1)])
def test_a_damaged_pickle_in_a_whole_archive(mutations):
    """With the zip's checksums in order, so that damage reaches the interpreter."""
    attempt(archive(mutated(PICKLE, mutations)))


@given(pickled=st.binary(max_size=60))
@settings(max_examples=400, deadline=None)
def test_random_instructions(pickled):
    attempt(archive(b"\x80\x02" + pickled + b"."))


@pytest.mark.parametrize("form", FILES)
def test_every_truncation_is_an_error(form):
    contents = FILES[form]
    for length in range(0, len(contents), max(1, len(contents) // 150)):
        with pytest.raises(tn.FormatError):
            load(contents[:length])


@pytest.mark.parametrize("kind", [dict, collections.OrderedDict, set], ids=lambda kind: kind.__name__)
def test_keys_that_were_chosen_to_collide_are_refused_at_once(kind):
    modulus = (1 << 61) - 1  # of Python's hashes of integers
    keys = [i * modulus for i in range(1500)]
    saved = set(keys) if kind is set else kind.fromkeys(keys)
    with pytest.raises(tn.FormatError, match="collide"):
        load(archive(pickle.dumps(saved, protocol=2)))
    pairs = dict.fromkeys([(1, key) for key in keys])
    with pytest.raises(tn.FormatError, match="collide"):
        load(archive(pickle.dumps(pairs, protocol=2)))


def test_many_plain_keys_are_no_collision():
    saved = {"state": {i: {0: i, 1: 2.0} for i in range(3000)}, (1, 2): 0, -1: -2, -2: -1}
    assert load(archive(pickle.dumps(saved, protocol=2))) == saved


@pytest.mark.parametrize("name", ["x.pt", "x.safetensors"])
def test_a_pipe_or_a_device_in_the_place_of_a_file_is_not_waited_for(name, tmp_path):
    os.mkfifo(tmp_path / name)
    with pytest.raises(tn.TenfoldError, match="no regular file"):
        tn.load(tmp_path / name)
    os.symlink("/dev/zero", tmp_path / f"endless-{name}")
    with pytest.raises(tn.TenfoldError, match="no regular file"):
        tn.load(tmp_path / f"endless-{name}")


@pytest.mark.parametrize("name", ["current", "shape", "_open_dims", "_saved_apart", "__class__"])
def test_an_attribute_does_not_take_the_place_of_what_every_tensor_has(name):
    tensor = torch.ones(2)
    vars(tensor)[name] = 5
    file = io.BytesIO()
    torch.save({"x": tensor}, file)
    file.seek(0)
    with pytest.raises(tn.FormatError, match=f"the place of Tensor.{name}\\b"):
        tn.load(file)
