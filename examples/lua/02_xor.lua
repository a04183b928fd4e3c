-- Learn XOR: a network of eight hidden units, its gradients by libtorch, its steps by Adam.
local tn = require("tenfold")

tn.manual_seed(1)
local x = tn.tensor({ { 0, 0 }, { 0, 1 }, { 1, 0 }, { 1, 1 } })
local y = tn.tensor({ { 0 }, { 1 }, { 1 }, { 0 } })
local network = tn.nn.Sequential(tn.nn.Linear(2, 8), tn.nn.Tanh(), tn.nn.Linear(8, 1))
local criterion = tn.nn.BCEWithLogitsLoss()
local adam = tn.optim.Adam(network:parameters(), { lr = 0.05 })

local loss
for step = 1, 300 do
  loss = criterion(network(x), y)
  adam:zero_grad()
  loss:backward()
  adam:step()
  if step % 100 == 0 then print(string.format("step %d: loss %.4f", step, loss:item())) end
end
assert(loss:item() < 0.1)

local answers = network(x):gt(0):tolist()
for i, pair in ipairs(x:tolist()) do
  print(string.format("%d xor %d = %d", pair[1], pair[2], answers[i][1] and 1 or 0))
end
