-- Learn to read digits of 8 x 8 pixels.
--
-- usage: luajit 04_digits.lua FOLDER, with digits.safetensors in it: `images` (float32, n x 64), `labels` (int64, n).
local tn = require("tenfold")

tn.manual_seed(1)
local data = tn.load(arg[1] .. "/digits.safetensors")
local count, batch = 1437, 64
local images, labels = data.images:narrow(0, 0, count), data.labels:narrow(0, 0, count)
local network = tn.nn.Sequential(tn.nn.Linear(64, 64), tn.nn.ReLU(), tn.nn.Dropout(0.1), tn.nn.Linear(64, 10))
local criterion = tn.nn.CrossEntropyLoss()
local adam = tn.optim.AdamW(network:parameters(), { lr = 3e-3 })
local schedule = tn.lr_scheduler.CosineAnnealingLR(adam, 12)

for epoch = 1, 12 do
  local last
  for x, y in tn.DataLoader({ images, labels }, { batch_size = batch, shuffle = true }) do
    last = tn.scope(function()
      local loss = criterion(network(x), y)
      adam:zero_grad()
      loss:backward()
      adam:step()
      return loss:item()
    end)
  end
  schedule:step()
  print(string.format("epoch %2d  loss %.4f", epoch, last))
end

local unseen = data.images.shape[1] - count
local guesses = tn.no_grad(function() return network:eval()(data.images:narrow(0, count, unseen)):argmax(1) end)
local right = guesses:eq(data.labels:narrow(0, count, unseen)):double():mean():item()
print(string.format("%.1f%% of the unseen digits are read", 100 * right))
assert(right > 0.9)
