"""`distributed.pipelining`: models whose stages lie on the devices along a dimension of a mesh."""

from tenfold.distributed.pipelining.schedules import Schedule1F1B, ScheduleGPipe
from tenfold.distributed.pipelining.stages import PipelineStage

__all__ = ["PipelineStage", "Schedule1F1B", "ScheduleGPipe"]
