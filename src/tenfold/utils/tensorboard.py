"""`SummaryWriter`: scalars, histograms, images, texts and hyperparameters in files that TensorBoard reads.

It needs the package `tensorboard`, as PyTorch's does, whose protocol buffers it writes."""

from __future__ import annotations

import datetime
import io
import os
import socket
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from tenfold.base.errors import ArgumentError, MissingEngine, UnsupportedError, located

try:
    from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2, tensor_shape_pb2
    from tensorboard.summary.writer.event_file_writer import EventFileWriter
except ImportError:
    raise MissingEngine(
        "torch.utils.tensorboard writes files by the package tensorboard, which is not installed",
        help="pip install tensorboard",
    ) from None

__all__ = ["FileWriter", "SummaryWriter"]

# Buckets that grow by a tenth from 1e-12 to 1e20, either side of zero: the ones that TensorBoard shows best.
_GROWTH = 1e-12 * 1.1 ** np.arange(int(np.ceil(np.log(1e32) / np.log(1.1))))
_BUCKETS = np.concatenate([-_GROWTH[::-1], [0.0], _GROWTH])


class FileWriter:
    """A file of events in a folder."""

    def __init__(self, log_dir: str, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = ""):
        self.log_dir = str(log_dir)
        self.event_writer = EventFileWriter(self.log_dir, max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        return self.event_writer.get_logdir()

    def add_event(self, event: Any, step: int | None = None, walltime: float | None = None) -> None:
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(
        self, summary: Any, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        self.add_event(event_pb2.Event(summary=summary), global_step, walltime)

    def flush(self) -> None:
        self.event_writer.flush()

    def close(self) -> None:
        self.event_writer.close()


class SummaryWriter:
    """Writes to `log_dir`, by default `runs/` and the time and the machine's name.

    with SummaryWriter() as writer:
        writer.add_scalar("loss", loss, step)
    """

    def __init__(
        self,
        log_dir: str | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ):
        if not log_dir:
            now = datetime.datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = os.fspath(log_dir)
        self.purge_step = purge_step
        self._options = (max_queue, flush_secs, filename_suffix)
        self._writers: dict[str, FileWriter] = {}
        self._get_file_writer()

    def _get_file_writer(self, folder: str | None = None) -> FileWriter:
        path = self.log_dir if folder is None else folder
        writer = self._writers.get(path)
        if writer is None:
            writer = self._writers[path] = FileWriter(path, *self._options)
            if (
                folder is None and self.purge_step is not None
            ):  # TensorBoard drops what was written from this step on
                writer.add_event(event_pb2.Event(file_version="brain.Event:2"), self.purge_step)
                start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
                writer.add_event(event_pb2.Event(session_log=start), self.purge_step)
        return writer

    @property
    def file_writer(self) -> FileWriter:
        return self._get_file_writer()

    def get_logdir(self) -> str:
        return self.log_dir

    def _add(self, summary: Any, step: int | None, walltime: float | None) -> None:
        self._get_file_writer().add_summary(summary, step, walltime)

    @located
    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """A number at a step."""
        summary = _scalar(tag, scalar_value, new_style, double_precision)
        self._add(summary, global_step, walltime)

    @located
    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Several numbers that are drawn in one picture: each has a folder of its own."""
        for tag, value in tag_scalar_dict.items():
            folder = f"{self.log_dir}/{main_tag.replace('/', '_')}_{tag}"
            self._get_file_writer(folder).add_summary(_scalar(main_tag, value), global_step, walltime)

    @located
    def add_tensor(
        self, tag: str, tensor: Any, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """A tensor of floats as it is."""
        array = _array(tensor).astype(np.float32)
        dims = [tensor_shape_pb2.TensorShapeProto.Dim(size=size) for size in array.shape]
        shape = tensor_shape_pb2.TensorShapeProto(dim=dims)
        proto = tensor_pb2.TensorProto(dtype="DT_FLOAT", tensor_shape=shape, float_val=array.ravel().tolist())
        plugin = summary_pb2.SummaryMetadata.PluginData(plugin_name="tensor")
        about = summary_pb2.SummaryMetadata(plugin_data=plugin)
        self._add(_summary(tag=tag, tensor=proto, metadata=about), global_step, walltime)

    @located
    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """How the numbers of a tensor are distributed."""
        if max_bins is not None:
            raise UnsupportedError("max_bins is not supported", help="give bins as a number or as edges")
        edges = _BUCKETS if isinstance(bins, str) and bins == "tensorflow" else bins
        self._add(_summary(tag=tag, histo=_histogram(_array(values), edges)), global_step, walltime)

    @located
    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """An image: floats from 0 to 1, or bytes."""
        self._add(_summary(tag=tag, image=_image(_array(img_tensor), dataformats)), global_step, walltime)

    @located
    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Several images, side by side in one."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    @located
    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: int | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """A figure of matplotlib's, or several, as an image."""
        from matplotlib import pyplot
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        drawn = []
        for each in figure if isinstance(figure, list) else [figure]:
            canvas = FigureCanvasAgg(each)
            canvas.draw()
            drawn.append(np.asarray(canvas.buffer_rgba())[:, :, :3])
            if close:
                pyplot.close(each)
        self.add_image(tag, np.stack(drawn), global_step, walltime, dataformats="NHWC")

    @located
    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """A text, which TensorBoard reads as Markdown."""
        from tensorboard.plugins.text import metadata

        text = metadata.create_summary_metadata("", "")
        shape = tensor_shape_pb2.TensorShapeProto(dim=[tensor_shape_pb2.TensorShapeProto.Dim(size=1)])
        proto = tensor_pb2.TensorProto(
            dtype="DT_STRING", string_val=[str(text_string).encode()], tensor_shape=shape
        )
        self._add(_summary(tag=f"{tag}/text_summary", metadata=text, tensor=proto), global_step, walltime)

    @located
    def add_hparams(
        self,
        hparam_dict: Mapping[str, Any],
        metric_dict: Mapping[str, Any],
        hparam_domain_discrete: Mapping[str, Any] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Hyperparameters and what came of them, in a folder of their own."""
        from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2

        if not isinstance(hparam_dict, Mapping) or not isinstance(metric_dict, Mapping):
            raise ArgumentError("hparam_dict and metric_dict are dicts")
        plain = {name: _plain(value) for name, value in hparam_dict.items()}
        infos = [
            api_pb2.HParamInfo(
                name=name, type="DATA_TYPE_STRING" if isinstance(value, str) else "DATA_TYPE_FLOAT64"
            )
            for name, value in plain.items()
        ]
        metrics = [api_pb2.MetricInfo(name=api_pb2.MetricName(tag=name)) for name in metric_dict]
        writer = self._get_file_writer(os.path.join(self.log_dir, run_name or str(time.time())))
        data = plugin_data_pb2.HParamsPluginData
        started = plugin_data_pb2.SessionStartInfo()
        for name, value in plain.items():
            setattr(
                started.hparams[name], "string_value" if isinstance(value, str) else "number_value", value
            )
        ended = plugin_data_pb2.SessionEndInfo(status=api_pb2.STATUS_SUCCESS)
        experiment = api_pb2.Experiment(hparam_infos=infos, metric_infos=metrics)
        for tag, content in (
            (metadata.EXPERIMENT_TAG, data(experiment=experiment)),
            (metadata.SESSION_START_INFO_TAG, data(session_start_info=started)),
            (metadata.SESSION_END_INFO_TAG, data(session_end_info=ended)),
        ):
            about = metadata.create_summary_metadata(content)
            writer.add_summary(_summary(tag=tag, metadata=about), global_step)
        for name, value in metric_dict.items():
            writer.add_summary(_scalar(name, value), global_step)

    @located
    def add_graph(self, model: Any, input_to_model: Any = None, *args: Any, **kwargs: Any) -> None:
        raise UnsupportedError(
            "TensorBoard draws graphs of TorchScript, which is not recorded",
            help="tenfold.show prints the program, and `tenfold explain` draws it",
        )

    @located
    def _refused(self, tag: str = "", *args: Any, **kwargs: Any) -> None:
        raise UnsupportedError(
            "of a SummaryWriter there are scalars, tensors, histograms, images, figures, texts and hparams",
            help="the package tensorboardX writes the others",
        )

    add_histogram_raw = add_image_with_boxes = add_video = add_audio = add_onnx_graph = add_embedding = (
        _refused
    )
    add_pr_curve = add_pr_curve_raw = add_custom_scalars = add_custom_scalars_multilinechart = _refused
    add_custom_scalars_marginchart = add_mesh = _refused

    def flush(self) -> None:
        for writer in self._writers.values():
            writer.flush()

    def close(self) -> None:
        for writer in self._writers.values():
            writer.flush()
            writer.close()
        self._writers.clear()

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


def _array(values: Any) -> np.ndarray:
    """Tensors, numbers and arrays as arrays of dtypes that NumPy itself has."""
    host = values.detach().cpu().numpy() if hasattr(values, "detach") else np.asarray(values)
    return host if host.dtype.kind in "biufc" else host.astype(np.float32)


def _plain(value: Any) -> Any:
    """A hyperparameter as a text or a number; what is neither by its text."""
    if hasattr(value, "item"):
        value = value.item()
    return value if isinstance(value, (str, bool, int, float)) else str(value)


def _summary(**value: Any) -> Any:
    return summary_pb2.Summary(value=[summary_pb2.Summary.Value(**value)])


def _scalar(tag: str, value: Any, as_tensor: bool = False, double: bool = False) -> Any:
    array = _array(value)
    if array.size != 1:
        raise ArgumentError(f"a scalar has one element, and {tag!r} has {array.size}")
    number = float(array.reshape(()))
    if not as_tensor and not double:
        return _summary(tag=tag, simple_value=number)
    from tensorboard.plugins.scalar import metadata

    if double:
        proto = tensor_pb2.TensorProto(double_val=[number], dtype="DT_DOUBLE")
    else:
        proto = tensor_pb2.TensorProto(float_val=[number], dtype="DT_FLOAT")
    return _summary(tag=tag, tensor=proto, metadata=metadata.create_summary_metadata("", ""))


def _histogram(values: np.ndarray, edges: Any) -> Any:
    """Counts by buckets, from the one before the first that is not empty to the last."""
    values = values.astype(np.float64).ravel()
    if not values.size:
        raise ArgumentError("a histogram of no numbers")
    counts, limits = np.histogram(values, edges)
    filled = np.flatnonzero(counts)
    if not filled.size:
        raise ArgumentError("no number lies in any of the bins")
    first, last = int(filled[0]), int(filled[-1])
    kept = counts[max(first - 1, 0) : last + 1].astype(np.float64)
    kept = kept if first else np.concatenate([[0.0], kept])
    return summary_pb2.HistogramProto(
        min=float(values.min()),
        max=float(values.max()),
        num=values.size,
        sum=float(values.sum()),
        sum_squares=float(values @ values),
        bucket_limit=limits[first : last + 2].tolist(),
        bucket=kept.tolist(),
    )


def _image(array: np.ndarray, dataformats: str) -> Any:
    """An image of rows, columns and colours, from dimensions in another order; several become a grid."""
    try:
        from PIL import Image
    except ImportError:
        raise MissingEngine("images are written by the package pillow", help="pip install pillow") from None
    order = dataformats.upper()
    if len(order) != array.ndim or len(set(order)) != len(order) or set(order) - set("NCHW"):
        raise ArgumentError(f"dataformats={dataformats!r} does not name the dimensions of {array.shape}")
    array = (
        array if array.dtype == np.uint8 else (array.astype(np.float32) * 255).clip(0, 255).astype(np.uint8)
    )
    if "C" not in order:
        array, order = array[..., None], f"{order}C"
    if "N" not in order:
        array, order = array[None], f"N{order}"
    images = array.transpose([order.index(axis) for axis in "NHWC"])
    if images.shape[-1] == 1:
        images = images.repeat(3, axis=-1)
    count, height, width, colours = images.shape
    columns = min(count, 8)
    rows = -(-count // columns)
    grid = np.zeros((rows * height, columns * width, colours), np.uint8)
    for i, each in enumerate(images):
        top, left = i // columns * height, i % columns * width
        grid[top : top + height, left : left + width] = each
    file = io.BytesIO()
    Image.fromarray(grid).save(file, format="PNG")
    height, width, colours = grid.shape
    return summary_pb2.Summary.Image(
        height=height, width=width, colorspace=colours, encoded_image_string=file.getvalue()
    )
