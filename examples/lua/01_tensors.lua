-- Tensors, operators, arguments by name, and errors that are values.
local tn = require("tenfold")

local x = tn.tensor({ { 1, 2, 3 }, { 4, 5, 6 } })
print(x * 2 + 1)
print("rows sum to", unpack(x:sum(1):tolist()))
print("and stay columns with", unpack(x:sum({ dim = { 1 }, keepdim = true }).shape))
print("the element at 1, 2 is", x[1][2]:item())
print("those above 2:", unpack(x[x:gt(2)]:tolist()))

local succeeded, problem = pcall(function() return x:matmul(x) end)
assert(not succeeded)
print(problem.name, problem.message)

-- A scope frees what it made, but for what it returns.
local norm = tn.scope(function() return ((x * x):sum() ^ 0.5) end)
print("norm", norm:item(), "with", tn.live_bytes(), "bytes alive")
