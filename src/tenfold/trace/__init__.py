"""The Trace: programs as they are recorded, one node for each ATen op; their gradients and control flow; how
they print, and how they are lowered to FlatIR."""
