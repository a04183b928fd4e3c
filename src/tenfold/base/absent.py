"""Modules of PyTorch's that have no counterpart here. They can be imported, because libraries import names
that a program never uses; a name of theirs says why it is not there, and what to use, when it is used."""

from __future__ import annotations

import functools
import sys
from abc import ABCMeta
from collections.abc import Mapping
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any, NamedTuple, NoReturn

from tenfold.base.errors import UnsupportedError
from tenfold.base.source import capture


class Absent(NamedTuple):
    """Why modules are absent, what to do instead, and which they are; what lies in one is absent too."""

    reason: str
    help: str
    modules: str
    # What a program may ask, and the answer: libraries ask whether a device is there before they use it.
    answers: Mapping[str, Any] = MappingProxyType({})
    # Classes that PyTorch keeps in `torch` itself.
    classes: str = ""


_NONE = {"is_available": False, "is_initialized": False, "device_count": 0, "is_bf16_supported": False}

ABSENT = (
    Absent(
        "of PyTorch's ways to run over many devices and processes this one is not here",
        "docs/scaling.md tells what is: meshes, DTensor, fully_shard, DDP, collectives, checkpoints",
        "torch.distributed torch._C._distributed_c10d torch.nn.parallel torch.numa",
        _NONE,
    ),
    Absent(
        "PyTorch's compiler reads Python's bytecode; Tenfold records what runs",
        "use tenfold.compile, tenfold.export or tenfold.show",
        "torch._dynamo torch._inductor torch._functorch torch._export torch._guards torch._logging"
        " torch._prims torch._prims_common torch._refs torch._decomp torch._subclasses torch._dispatch"
        " torch._ops"
        " torch._custom_ops torch._library torch.export torch._higher_order_ops torch.utils._sympy"
        " torch.utils._python_dispatch torch.utils._mode_utils torch._python_dispatcher torch._lazy"
        " torch.fx.experimental"
        " torch.fx.operator_schemas torch.fx.tensor_type torch.fx.traceback torch.fx.annotate torch.fx.config"
        " torch.fx.passes torch.fx._utils torch.fx._compatibility torch.fx._pytree",
    ),
    Absent(
        "of quantization there are eager-mode stubs, observers, prepare and convert for linear layers",
        "use those, quantize_per_tensor, fake_quantize_per_tensor_affine, or ops.quantized_decomposed",
        "torch.ao torch.quantization torch.nn.quantized torch.nn.qat torch.nn.intrinsic torch.nn.quantizable",
    ),
    Absent(
        "TorchScript is read and run by PyTorch alone",
        "use tenfold.compile or tenfold.export",
        "torch.jit torch._jit_internal torch.utils.mobile_optimizer torch.utils.bundled_inputs",
        classes="AliasDb AnyType Argument ArgumentSpec AwaitType BenchmarkConfig BenchmarkExecutionStats"
        " Block BoolType CallStack Capsule ClassType Code CompilationUnit CompleteArgumentSpec ComplexType"
        " ConcreteModuleType ConcreteModuleTypeBuilder DeepCopyMemoTable DeserializationStorageContext"
        " DeviceObjType DictType EnumType ErrorReport ExecutionPlan FileCheck FloatType FunctionSchema"
        " FutureType Gradient Graph GraphExecutorState IODescriptor InferredType IntType InterfaceType"
        " JITException ListType LiteScriptModule LockingLogger LoggerBase Node NoneType NoopLogger NumberType"
        " OperatorInfo OptionalType PyObjectType RRefType ScriptClass ScriptClassFunction ScriptDict"
        " ScriptDictIterator ScriptDictKeyIterator ScriptFunction ScriptList ScriptListIterator ScriptMethod"
        " ScriptModule ScriptModuleSerializer ScriptObject ScriptObjectProperty SerializationStorageContext"
        " StaticModule StreamObjType StringType SymBoolType SymIntType TensorType TracingState TupleType Type"
        " UnionType Use Value ParameterDict ModuleDict BufferDict",
    ),
    Absent(
        "ONNX is not written",
        "tenfold.export(model, inputs) gives the program as torch dialect or StableHLO",
        "torch.onnx",
    ),
    Absent(
        "it measures or builds PyTorch itself",
        "time a program with time.perf_counter around tenfold.eval, and look at it with tenfold.show",
        "torch.profiler torch.autograd.profiler torch.autograd.profiler_util torch.monitor"
        " torch.utils.benchmark torch.utils.bottleneck torch.utils.collect_env torch.utils.cpp_extension"
        " torch.utils.flop_counter torch.utils.jit torch.utils.throughput_benchmark torch.utils.viz"
        " torch.utils.file_baton torch.utils.hipify torch.cuda.nvtx torch.cuda.profiler torch.cuda.tunable"
        " torch.cuda.gds torch.cuda.nccl torch.cuda.sparse torch.cuda.jiterator torch.cuda.memory",
    ),
    Absent(
        "it is for a device that XLA does not reach from here",
        "use the CPU or CUDA",
        "torch.mps torch.xpu torch.mtia",
        _NONE,
    ),
    Absent(
        "there are no tensors of that layout",
        "use a dense tensor; tenfold.nn.utils.rnn.pad_sequence makes one of pieces of different lengths",
        "torch.nested",
    ),
    Absent(
        "it is part of how PyTorch itself is written in C++ and Python",
        "use the public function of that purpose",
        "torch._C torch._utils torch._utils_internal torch._tensor_str torch._lowrank torch._linalg_utils"
        " torch._namedtensor_internals torch._classes torch._storage_docs torch._weights_only_unpickler"
        " torch._streambase torch._vmap_internals torch._appdirs torch._awaits torch._sources"
        " torch._meta_registrations torch._numpy torch._strobelight torch._environment"
        " torch._thread_safe_fork torch._vendor"
        " torch.torch_version torch.return_types torch.utils._traceback torch.utils._stats"
        " torch.utils._triton torch.utils._foreach_utils torch.utils._typing_utils torch.utils._import_utils"
        " torch.utils._config_module torch.utils._cxx_pytree torch.utils._device torch.utils._ordered_set"
        " torch.nn.utils._named_member_accessor torch.utils._exposed_in"
        " torch.utils._dtype_abbrs torch.utils._functools torch.autograd.profiler_legacy",
        classes="AcceleratorError AggregationType FatalError Future PyTorchFileReader PyTorchFileWriter Tag"
        " ThroughputBenchmark DispatchKey",
    ),
    Absent(
        "it is not part of Tenfold",
        "save model.state_dict(), and read data with DataLoader",
        "torch.package torch.nativert torch.utils.data.datapipes torch.utils.data.graph"
        " torch.utils.data.graph_settings torch.contrib",
    ),
)
CLASSES = {name: each for each in ABSENT for name in each.classes.split()}
MODULES = {name: each for each in ABSENT for name in each.modules.split()}


def reason_of(name: str) -> Absent | None:
    """Why a module of PyTorch's is absent; None of one that is not known to be."""
    while name:
        if name in MODULES:
            return MODULES[name]
        name = name.rpartition(".")[0]
    return None


class AbsentName(ABCMeta):
    """The type of an absent name. It is a class, so that it can be subclassed, tested for, and stand in an
    annotation; calling it, or a class made of it, is an error."""

    absent: Absent
    path: str

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if (
            cls.__name__.startswith("_")
            and len(args) == 1
            and not kwargs
            and isinstance(args[0], FunctionType)
        ):
            return cls._decorated(args[0])
        cls._refuse()

    def _decorated(cls, function: FunctionType) -> Any:
        """What a decorator of PyTorch's own workings makes of a library's function: one that is refused when
        it is called, since the library may never call it."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> NoReturn:
            cls._refuse()

        return call

    def _refuse(cls) -> NoReturn:
        raise UnsupportedError(cls.absent.reason, help=cls.absent.help).located(cls.path, capture())

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = absent_name(cls.path, name, cls.absent)
        setattr(cls, name, found)
        return found

    def __getitem__(cls, item: Any) -> Any:
        return cls


def absent_name(module: str, name: str, absent: Absent) -> AbsentName:
    """A name of an absent module."""
    words = {"absent": absent, "path": f"{module}.{name}", "__module__": module, "__doc__": absent.reason}
    return AbsentName(name, (), words)


class AbsentModule(ModuleType):
    """A module that can be imported, with whatever is asked of it."""

    __path__: list[str] = []
    __all__: list[str] = []

    def __init__(self, name: str, absent: Absent):
        super().__init__(name, f"Not supported: {absent.reason}.")
        self._absent = absent
        for question, answer in absent.answers.items():
            setattr(self, question, lambda *args, answer=answer, **kwargs: answer)

    @classmethod
    def of(cls, name: str) -> AbsentModule:
        """The absent module of that name of PyTorch's; the same one whenever it is asked for."""
        found = sys.modules.get(name)
        absent = reason_of(name)
        assert absent is not None, name
        return found if isinstance(found, AbsentModule) else AbsentModule(name, absent)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = sys.modules.get(f"{self.__name__}.{name}")
        if found is None:
            found = absent_name(self.__name__, name, self._absent)  # type: ignore[assignment]
        setattr(self, name, found)
        return found
