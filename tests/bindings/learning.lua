-- A hundred steps from given weights: `luajit learning.lua xor|digits FILE` prints the losses.

local tn = require("tenfold")
local given = tn.load(arg[2])
local lr = arg[1] == "xor" and 0.05 or 0.01
local loss_of = arg[1] == "xor" and "binary_cross_entropy_with_logits" or "cross_entropy"
local parameters = { given.w1, given.b1, given.w2, given.b2 }
for _, each in ipairs(parameters) do each.requires_grad = true end
local adam = tn.optim.Adam(parameters, { lr = lr })

for _ = 1, 100 do
  local hidden = tn.linear(given.x, given.w1, given.b1):tanh()
  local loss = tn.loss(loss_of, tn.linear(hidden, given.w2, given.b2), given.y)
  adam:zero_grad()
  loss:backward()
  adam:step()
  print(string.format("%.9g", loss:item()))
end
