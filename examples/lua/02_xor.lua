-- Learn XOR: a network of eight hidden units, its gradients by libtorch, its steps by Adam.
local tn = require("tenfold")

tn.manual_seed(1)
local x = tn.tensor({ { 0, 0 }, { 0, 1 }, { 1, 0 }, { 1, 1 } })
local y = tn.tensor({ { 0 }, { 1 }, { 1 }, { 0 } })
local w1, b1 = tn.randn(8, 2):requires_grad_(), tn.randn(8):requires_grad_()
local w2, b2 = tn.randn(1, 8):requires_grad_(), tn.randn(1):requires_grad_()
local adam = tn.optim.Adam({ w1, b1, w2, b2 }, { lr = 0.05 })

local function forward() return tn.linear(tn.linear(x, w1, b1):tanh(), w2, b2) end

local loss
for step = 1, 300 do
  loss = tn.loss("binary_cross_entropy_with_logits", forward(), y)
  adam:zero_grad()
  loss:backward()
  adam:step()
  if step % 100 == 0 then print(string.format("step %d: loss %.4f", step, loss:item())) end
end
assert(loss:item() < 0.1)

local answers = forward():gt(0):tolist()
for i, pair in ipairs(x:tolist()) do
  print(string.format("%d xor %d = %d", pair[1], pair[2], answers[i][1] and 1 or 0))
end
