-- Learn to read digits of 8 x 8 pixels.
--
-- usage: luajit 04_digits.lua FOLDER, with digits.safetensors in it: `images` (float32, n x 64), `labels` (int64, n).
local tn = require("tenfold")

tn.manual_seed(1)
local data = tn.load(arg[1] .. "/digits.safetensors")
local count, batch = 1437, 64
local function layer(inputs, outputs)
  local bound = 1 / math.sqrt(inputs)
  return (tn.rand(outputs, inputs) * 2 - 1):mul_(bound):requires_grad_(), tn.zeros(outputs):requires_grad_()
end
local w1, b1 = layer(64, 64)
local w2, b2 = layer(64, 10)
local adam = tn.optim.AdamW({ w1, b1, w2, b2 }, { lr = 3e-3 })
local function forward(x) return tn.linear(tn.linear(x, w1, b1):relu(), w2, b2) end

for epoch = 1, 12 do
  local order, last = tn.randperm(count), nil
  for first = 0, count - batch, batch do
    last = tn.scope(function()
      local chosen = order:narrow(0, first, batch)
      local loss = tn.loss("cross_entropy", forward(data.images:index_select(0, chosen)), data.labels:index_select(0, chosen))
      adam:zero_grad()
      loss:backward()
      adam:step()
      return loss:item()
    end)
  end
  print(string.format("epoch %2d  loss %.4f", epoch, last))
end

local unseen = data.images.shape[1] - count
local guesses = tn.no_grad(function() return forward(data.images:narrow(0, count, unseen)):argmax(1) end)
local right = guesses:eq(data.labels:narrow(0, count, unseen)):double():mean():item()
print(string.format("%.1f%% of the unseen digits are read", 100 * right))
assert(right > 0.9)
