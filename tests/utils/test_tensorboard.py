"""What a SummaryWriter writes, beside PyTorch's; both need the package tensorboard."""

import glob
import importlib.util
import os

import numpy as np
import pytest

import tenfold as tn

INSTALLED = importlib.util.find_spec("tensorboard") is not None
needed = pytest.mark.skipif(not INSTALLED, reason="the package tensorboard is not installed")


@pytest.mark.skipif(INSTALLED, reason="the package tensorboard is installed")
def test_without_the_package_the_import_says_what_to_install():
    with pytest.raises(ImportError, match="pip install tensorboard"):
        importlib.import_module("tenfold.utils.tensorboard")
    with pytest.raises(ImportError, match="tensorboard"):
        importlib.import_module("torch.utils.tensorboard")


def written(package, folder):
    """The events of a program, without times."""
    writer_of = importlib.import_module(f"{package.__name__}.utils.tensorboard").SummaryWriter
    image = np.random.RandomState(0).rand(3, 4, 5).astype("float32")
    with writer_of(str(folder), purge_step=2) as writer:
        writer.add_scalar("loss", package.tensor(0.5), 1)
        writer.add_scalar("precise", 0.1, 1, new_style=True, double_precision=True)
        writer.add_scalar("half", package.tensor(1.5, dtype=package.bfloat16).float(), 3, walltime=7.0)
        writer.add_scalars("both", {"a": 1, "b": 2.5}, 4)
        writer.add_histogram("values", package.tensor([-1.0, 0.0, 0.25, 0.3, 1e3]), 5)
        writer.add_histogram("counted", np.arange(10.0), 5, bins=4)
        writer.add_image("chw", package.tensor(image), 6)
        writer.add_image("hw", package.tensor(image[0]), 6, dataformats="HW")
        writer.add_image("bytes", (image * 200).astype("uint8").transpose(1, 2, 0), 6, dataformats="HWC")
        writer.add_images("grid", package.tensor(np.stack([image] * 10)), 6)
        writer.add_text("note", "**hello**", 7)
        writer.add_tensor("raw", package.ones(2, 3), 8)
        writer.add_hparams({"lr": 0.1, "bn": True, "name": "x", "n": 3}, {"acc": 0.9}, run_name="trial")
        assert writer.get_logdir() == str(folder)
    return {os.path.relpath(path, folder): events(path) for path in folders(folder)}


def folders(folder):
    found = glob.glob(f"{folder}/**/events*", recursive=True)
    return sorted({os.path.dirname(path) for path in found})


def events(folder):
    from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader

    (path,) = glob.glob(f"{folder}/events*")
    kept = []
    for event in LegacyEventFileLoader(path).Load():
        event.ClearField("wall_time")
        if not event.file_version:
            kept.append(event)
    return kept


@needed
def test_events_are_pytorchs(tmp_path):
    import torch

    ours, theirs = written(tn, tmp_path / "ours"), written(torch, tmp_path / "theirs")
    assert list(ours) == list(theirs)
    for folder, expected in theirs.items():
        assert len(ours[folder]) == len(expected)
        for mine, yours in zip(ours[folder], expected):
            assert mine.step == yours.step
            for left, right in zip(mine.summary.value, yours.summary.value, strict=True):
                assert_alike(left, right)


def assert_alike(left, right):
    assert left.tag == right.tag and left.WhichOneof("value") == right.WhichOneof("value")
    if left.HasField("histo"):
        for field in ("min", "max", "num", "sum", "sum_squares", "bucket_limit", "bucket"):
            np.testing.assert_allclose(
                getattr(left.histo, field), getattr(right.histo, field), rtol=1e-6, atol=1e-12
            )
    elif left.HasField("image"):
        np.testing.assert_array_equal(decoded(left.image), decoded(right.image))
    elif left.tag.startswith("_hparams_"):
        contents = [metadata_of(each) for each in (left, right)]
        assert contents[0] == contents[1]
    else:
        left.metadata.ClearField("summary_description"), left.metadata.ClearField("data_class")
        right.metadata.ClearField("summary_description"), right.metadata.ClearField("data_class")
        assert left.tensor == right.tensor and left.simple_value == right.simple_value
        assert left.metadata.plugin_data.plugin_name == right.metadata.plugin_data.plugin_name


def metadata_of(value):
    """What is said of hyperparameters, without when."""
    from tensorboard.plugins.hparams import plugin_data_pb2

    data = plugin_data_pb2.HParamsPluginData.FromString(value.metadata.plugin_data.content)
    data.ClearField("version")
    return data


def decoded(image):
    import io

    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(image.encoded_image_string)))


@needed
def test_what_is_not_written_says_so(tmp_path):
    from tenfold.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        for name in ("add_graph", "add_embedding", "add_video"):
            with pytest.raises(tn.UnsupportedError, match="TensorBoard draws|of a SummaryWriter"):
                getattr(writer, name)("tag", None)
        with pytest.raises(ValueError, match="one element"):
            writer.add_scalar("several", tn.ones(2))
