"""The XLA engine, on jaxlib alone: devices, buffers, compiling and running StableHLO modules.

`door.py` imports jaxlib, and nothing else here does.
"""

from tenfold.base.late import late_imports
from tenfold.engines.xla.options import (
    HASTY as HASTY,
    LONG as LONG,
    OPTIONS as OPTIONS,
    exact as exact,
    fingerprint as fingerprint,
    is_deterministic as is_deterministic,
    overrides as overrides,
    set_deterministic as set_deterministic,
    set_exact as set_exact,
)

with late_imports(__name__) as late:
    from tenfold.engines.xla.buffers import (
        around as around,
        array_type as array_type,
        copy as copy,
        described as described,
        fetch as fetch,
        fetch_ahead as fetch_ahead,
        from_dlpack as from_dlpack,
        is_row_major as is_row_major,
        lend as lend,
        number as number,
        pointer as pointer,
        put as put,
        put_on as put_on,
        shared as shared,
        to_dlpack as to_dlpack,
    )
    from tenfold.engines.xla.clients import (
        Client as Client,
        client as client,
        device_kind as device_kind,
        find_cuda_plugin as find_cuda_plugin,
        in_use as in_use,
        require as require,
        require_data as require_data,
        require_unforked as require_unforked,
        started as started,
        synchronize as synchronize,
    )
    from tenfold.engines.xla.compiling import (
        TURNS as TURNS,
        Executable as Executable,
        calls_python as calls_python,
        compile as compile,
        deserialize as deserialize,
        executables as executables,
        let_go as let_go,
        serialize as serialize,
        turn as turn,
    )
    from tenfold.engines.xla.door import headers as headers, jaxlib as jaxlib
    from tenfold.engines.xla.errors import translate as translate
    from tenfold.engines.xla.functions import provide as provide
    from tenfold.engines.xla.tracing import (
        TraceEvent as TraceEvent,
        end_trace as end_trace,
        profiled as profiled,
        program_number as program_number,
        start_trace as start_trace,
    )

__getattr__, __dir__, __all__ = late.attributes()
