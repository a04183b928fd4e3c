"""A former name of `distributed.device_mesh`."""

from tenfold.distributed.device_mesh import DeviceMesh, init_device_mesh

__all__ = ["DeviceMesh", "init_device_mesh"]
