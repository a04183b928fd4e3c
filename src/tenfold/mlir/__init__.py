"""Programs as MLIR modules: StableHLO through jaxlib's bindings, the torch dialect through torch-mlir's."""
