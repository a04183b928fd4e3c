"""Modules of PyTorch's that have no counterpart here. They can be imported, because libraries import names
that a program never uses; a name of theirs says why it is not there, and what to use, when it is used."""

from __future__ import annotations

import functools
import sys
from abc import ABCMeta
from collections.abc import Mapping, Sequence
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
    # Public names of modules that are here otherwise, as "torch.cuda: MemPool use_mem_pool".
    names: Sequence[str] = ()


_NONE = {"is_available": False, "is_initialized": False, "device_count": 0, "is_bf16_supported": False}

ABSENT = (
    Absent(
        "of PyTorch's ways to run over many devices and processes this one is not here",
        "docs/scaling.md tells what is: meshes, DTensor, fully_shard, DDP, collectives, checkpoints",
        "torch.distributed torch._C._distributed_c10d torch.nn.parallel torch.numa torch.cuda.comm",
        _NONE,
    ),
    Absent(
        "PyTorch's compiler reads Python's bytecode; Tenfold records what runs",
        "use tenfold.compile, tenfold.export or tenfold.show",
        "torch._dynamo torch._inductor torch._functorch torch._export torch._guards torch._logging"
        " torch._prims torch._prims_common torch._refs torch._decomp torch._subclasses torch._dispatch"
        " torch._ops"
        " torch._custom_ops torch._library torch.export torch._higher_order_ops torch.utils._sympy"
        " torch.utils._mode_utils torch._python_dispatcher torch._lazy"
        " torch.fx.experimental"
        " torch.fx.operator_schemas torch.fx.tensor_type torch.fx.traceback torch.fx.annotate torch.fx.config"
        " torch.fx.passes torch.fx._utils torch.fx._compatibility torch.fx._pytree"
        " torch.fx._lazy_graph_module torch.fx._graph_pickler torch._compile"
        " torch._custom_op torch.compiler._cache torch.compiler.config"
        " torch.cuda.graphs torch.accelerator.graphs torch.utils._debug_mode torch.utils._thunk",
        names=(
            "torch.accelerator: Graph",
            "torch.autograd.graph: region_activation_memory_budget",
            "torch.compiler: F FuncType config get_default_backend keep_portable_guards_unsafe"
            " keep_tensor_guards_unsafe load_cache_artifacts load_compiled_function nested_compile_region"
            " save_cache_artifacts set_default_backend set_enable_guard_collectives skip_all_guards_unsafe"
            " skip_guard_on_all_nn_modules_unsafe skip_guard_on_globals_unsafe"
            " skip_guard_on_inbuilt_nn_modules_unsafe",
            "torch.cuda: graph_pool_handle make_graphed_callables",
            "torch.func: debug_unwrap rearrange",
            "torch.fx.graph: CodeGen TransformCodeFunc",
            "torch.fx.proxy: MetaProxy Scope ScopeContextManager assert_fn",
            "torch.fx.graph_module: reduce_graph_module reduce_package_graph_module",
            "torch.library: fallthrough_kernel get_ctx get_kernel register_autocast register_torch_dispatch"
            " triton_op wrap_triton",
            "torch.nn.attention.flex_attention: FlexKernelOptions",
            "torch.utils.checkpoint: CheckpointFunction GraphExecGroup SAC_IGNORED_OPS"
            " SelectiveCheckpointContext",
        ),
    ),
    Absent(
        "below autograd there are no calls to see: a gradient is one program, computed from another",
        "use torch.overrides.TorchFunctionMode, which sees every function and method that is called",
        "torch.utils._python_dispatch",
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
        " torch.utils.jit torch.utils.throughput_benchmark torch.utils.viz"
        " torch.utils.file_baton torch.utils.hipify torch.cuda.profiler torch.cuda.tunable"
        " torch.cuda.gds torch.cuda.nccl torch.cuda.sparse torch.cuda.jiterator torch.cuda.memory"
        " torch.cuda.green_contexts torch.backends.xeon torch.nn.cpp torch.utils.backcompat"
        " torch.utils.backend_registration torch.utils.cpp_backtrace"
        " torch.utils.debug_log torch.utils.model_dump"
        " torch.utils.show_pickle torch.utils._strobelight torch.utils._runtime_estimation"
        " torch.utils._content_store",
        _NONE,
        names=(
            "torch.accelerator: get_device_capability",
            "torch.backends.cuda: blas_workspace_size cuBLASModule cuFFTPlanCache"
            " cuFFTPlanCacheAttrContextProp cuFFTPlanCacheManager cublas_workspace_size"
            " cublaslt_workspace_size cufft_plan_cache",
            "torch.backends.mkl: verbose",
            "torch.backends.mkldnn: verbose",
            "torch.cuda: CUDAPluggableAllocator GreenContext MemPool caching_allocator_alloc"
            " caching_allocator_delete caching_allocator_disabled caching_allocator_enable"
            " change_current_allocator check_error clock_rate cudaStatus cudart current_blas_handle"
            " current_solver_handle device_memory_used get_allocator_backend get_arch_list get_gencode_flags"
            " get_per_process_memory_fraction get_stream_from_external get_sync_debug_mode"
            " host_memory_stats host_memory_stats_as_nested_dict list_gpu_processes"
            " memory_snapshot memory_usage power_draw reset_accumulated_host_memory_stats"
            " reset_accumulated_memory_stats reset_peak_host_memory_stats set_sync_debug_mode temperature"
            " use_mem_pool utilization",
            "torch.nn.attention: activate_flash_attention_impl current_flash_attention_impl"
            " list_flash_attention_impls register_flash_attention_impl restore_flash_attention_impl",
        ),
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
        "torch.nested torch.sparse.semi_structured torch.sparse._semi_structured_ops"
        " torch.sparse._semi_structured_conversions torch.nn.attention.varlen",
        names=(
            "torch.sparse: SparseSemiStructuredTensor SparseSemiStructuredTensorCUSPARSELT"
            " SparseSemiStructuredTensorCUTLASS as_sparse_gradcheck solve spsolve to_sparse_semi_structured",
        ),
    ),
    Absent(
        "masked tensors are a prototype of PyTorch's",
        "use the functions of tenfold.masked, or tenfold.where with a mask of your own",
        "torch.masked.maskedtensor torch.masked._ops torch.masked._docs",
        names=("torch.masked: MaskedTensor as_masked_tensor is_masked_tensor masked_tensor",),
    ),
    Absent(
        "it is part of how PyTorch itself is written in C++ and Python",
        "use the public function of that purpose",
        "torch._C torch._utils torch._utils_internal torch._tensor_str torch._lowrank torch._linalg_utils"
        " torch._namedtensor_internals torch._classes torch._storage_docs torch._weights_only_unpickler"
        " torch._streambase torch._vmap_internals torch._appdirs torch._awaits torch._sources"
        " torch._meta_registrations torch._numpy torch._strobelight torch._environment"
        " torch._thread_safe_fork torch._vendor"
        " torch.utils._traceback torch.utils._stats"
        " torch.utils._triton torch.utils._typing_utils torch.utils._import_utils"
        " torch.utils._config_module torch.utils._cxx_pytree torch.utils._device torch.utils._ordered_set"
        " torch.nn.utils._named_member_accessor torch.utils._exposed_in"
        " torch.utils._dtype_abbrs torch.utils._functools torch.autograd.profiler_legacy"
        " torch._lobpcg torch._native torch._opaque_base torch._size_docs torch._tensor_docs"
        " torch._tensor_iterator torch._torch_docs torch.accelerator._utils torch.autograd._functions"
        " torch.backends._coreml torch.backends._nnapi torch.backends.cudnn.rnn"
        " torch.cuda._annotate_cuda_graph_trace torch.cuda._device_limits torch.cuda._gpu_trace"
        " torch.cuda._graph_annotations torch.cuda._memory_viz torch.cuda._pin_memory_utils"
        " torch.cuda._sanitizer torch.cuda._utils torch.func._random torch.multiprocessing._atfork"
        " torch.multiprocessing.reductions torch.nn.attention._fa3 torch.nn.attention._fa4"
        " torch.nn.attention._registry torch.nn.attention._utils torch.nn.attention.experimental"
        " torch.nn.backends torch.nn.modules._functions torch.nn.utils._deprecation_utils"
        " torch.nn.utils._expanded_weights torch.nn.utils._per_sample_grad torch.optim._functional"
        " torch.optim._multi_tensor torch.optim._stateless torch.sparse._triton_ops"
        " torch.sparse._triton_ops_meta torch.utils._appending_byte_serializer"
        " torch.utils._cpp_embed_headers torch.utils._cpp_extension_versioner torch.utils._cuda_debug"
        " torch.utils._filelock torch.utils._get_clean_triton torch.utils._helion torch.utils._inspect"
        " torch.utils._pallas torch.utils._zip torch.utils.data._utils.fetch"
        " torch.utils.data._utils.pin_memory torch.utils.data._utils.signal_handling torch.utils.mkldnn",
        classes="AcceleratorError AggregationType FatalError Future PyTorchFileReader PyTorchFileWriter Tag"
        " ThroughputBenchmark DispatchKey",
        names=(
            "torch: PRIVATE_OPS QInt32Storage QInt8Storage QUInt2x4Storage QUInt4x2Storage QUInt8Storage",
            "torch.amp.grad_scaler: OptState",
            "torch.amp.autocast_mode: autocast_decorator",
            "torch.autograd: NestedIOFunction"
            " is_multithreading_enabled is_view_replay_enabled enforce_grad_layout_policy",
            "torch.autograd.function: AUTOGRAD_FUNCTION_COUNTER BackwardCFunction FunctionMeta"
            " NestedIOFunction",
            "torch.autograd.grad_mode: enforce_grad_layout_policy set_multithreading_enabled",
            "torch.autograd.graph: increment_version set_override_stale_capture_stream"
            " set_warn_on_accumulate_grad_stream_mismatch",
            "torch.autograd.gradcheck: FAILED_BATCHED_GRAD_MSG FAILED_BATCHED_GRAD_MSG_FWD_AD"
            " FAILED_NONDET_MSG FAST_FAIL_SLOW_OK_MSG get_analytical_jacobian get_numerical_jacobian"
            " get_numerical_jacobian_wrt_specific_input",
            "torch.autograd.variable: VariableMeta",
            "torch.backends: ContextProp GenericModule PropModule flags set_flags",
            "torch.backends.cudnn: CUDNN_TENSOR_DTYPES CudnnModule",
            "torch.backends.cusparselt: get_max_alg_id",
            "torch.backends.miopen: MiopenModule",
            "torch.backends.mkldnn: MkldnnModule",
            "torch.backends.opt_einsum: OptEinsumModule",
            "torch.backends.python_native: DSLController PythonNativeModule",
            "torch.backends.quantized: QuantizedEngine",
            "torch.backends.xnnpack: XNNPACKEngine",
            "torch.cuda.amp: amp_definitely_not_available",
            "torch.cuda.amp.common: amp_definitely_not_available",
            "torch.multiprocessing.pool: clean_worker",
            "torch.multiprocessing.queue: ConnectionWrapper",
            "torch.nn.attention.bias: CausalBias",
            "torch.nn: factory_kwargs",
            "torch.nn.modules: Container",
            "torch.nn.modules.container: Container",
            "torch.nn.modules.rnn: apply_permutation",
            "torch.nn.utils.parametrize: transfer_parametrizations_and_params",
            "torch.nn.utils.rnn: PackedSequence_ bind",
            "torch.nn.utils.spectral_norm: SpectralNormLoadStateDictPreHook SpectralNormStateDictHook",
            "torch.optim: swap_in_optimizer_params_and_state",
            "torch.random: thread_safe_generator",
            "torch.optim.adam: adam",
            "torch.optim.sgd: sgd",
            "torch.serialization: LoadEndianness SourceChangeWarning StorageType"
            " check_module_version_greater_or_equal default_restore_location get_crc32_options"
            " get_default_load_endianness get_default_mmap_options get_unsafe_globals_in_checkpoint"
            " location_tag mkdtemp normalize_storage_type register_package set_crc32_options"
            " set_default_load_endianness set_default_mmap_options skip_data storage_to_tensor_type"
            " validate_cuda_device validate_hpu_device",
            "torch.types: py_sym_types",
            "torch.utils: cmake_prefix_path set_module",
            "torch.utils.data.backward_compatibility: worker_init_fn",
            "torch.utils.dlpack: DLDeviceType",
            "torch.utils.hooks: BackwardHook",
            "torch.utils.weak: WeakRef",
        ),
    ),
    Absent(
        "it is not part of Tenfold",
        "save model.state_dict(), and read data with DataLoader",
        "torch.package torch.nativert torch.utils.data.datapipes torch.utils.data.graph"
        " torch.utils.data.graph_settings torch.contrib",
        names=(
            "torch.utils.data: DFIterDataPipe DataChunk argument_validation"
            " guaranteed_datapipes_determinism non_deterministic runtime_validation"
            " runtime_validation_disabled",
        ),
    ),
)
CLASSES = {name: each for each in ABSENT for name in each.classes.split()}
MODULES = {name: each for each in ABSENT for name in each.modules.split()}
NAMES = {
    f"{module}.{name}": each
    for each in ABSENT
    for module, _, names in (line.partition(": ") for line in each.names)
    for name in names.split()
}

# What a library asks PyTorch's own workings before it chooses a way, and the answer of a program that none of
# them handles.
ANSWERS: dict[str, Any] = {
    **dict.fromkeys(
        (
            "torch._guards.detect_fake_mode",
            "torch._guards.TracingContext.try_get",
            "torch.utils._python_dispatch._get_current_dispatch_mode",
        )
    ),
    **dict.fromkeys(
        (
            "torch._C._functorch.is_batchedtensor",
            "torch._C._functorch.is_functorch_wrapped_tensor",
            "torch._C._functorch.is_gradtrackingtensor",
            "torch._C._functorch.is_legacy_batchedtensor",
            "torch._subclasses.fake_tensor.is_fake",
            "torch.fx.experimental.symbolic_shapes.has_free_symbols",
            "torch.fx.experimental.symbolic_shapes.is_symbolic",
            "torch.utils._python_dispatch._is_in_torch_dispatch_mode",
        ),
        False,
    ),
}


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


def absent_name(module: str, name: str, absent: Absent) -> Any:
    """A name of an absent module, or the function that answers a question."""
    path = f"{module}.{name}"
    if path in ANSWERS:
        return lambda *args, **kwargs: ANSWERS[path]
    if name in absent.answers:
        return lambda *args, **kwargs: absent.answers[name]
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
            found = absent_name(self.__name__, name, self._absent)
        setattr(self, name, found)
        return found


def as_markdown() -> str:
    """The modules and names that are absent, as sections of docs/unsupported.md."""
    sections = []
    for each in ABSENT:
        lines = [f"### {each.reason[0].upper()}{each.reason[1:]}", f"Instead, {each.help}."]
        lines.append(f"Modules: {', '.join(f'`{name}`' for name in each.modules.split())}.")
        for module, _, names in (line.partition(": ") for line in each.names):
            lines.append(f"Of `{module}`: {', '.join(f'`{name}`' for name in names.split())}.")
        sections.append("\n\n".join(lines))
    return "\n\n".join(sections)
