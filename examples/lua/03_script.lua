-- Trace a Lua function into a TorchScript module, save it, load it, call it. Python and C++ can load the file too.
local tn = require("tenfold")
local path = (arg[1] or ".") .. "/gate.pt"

local x = tn.tensor({ { -1, 0.5 }, { 2, -3 } })
local traced = tn.jit.trace(function(a) return a:sigmoid() * a end, { x })
traced:save(path)

local loaded = tn.jit.load(path)
print(loaded:code())
assert((loaded(x) - x:sigmoid() * x):abs():max():item() == 0)
print(loaded(x))
