"""Build an image model by its name, train it a step, save it and load it."""

import sys

from stages import compare, folder, gradients, numbers, same_weights, stage

with stage("imports"):
    import timm
    import torch

with stage("builds"):
    model = timm.create_model(sys.argv[1], pretrained=False, num_classes=5)
    same_weights(torch, model, 0.05)

with stage("trains"):
    model.eval()  # running statistics aside, so that small batches agree to rounding
    images = torch.tensor(numbers(2, 3, *([224, 224] if "224" in sys.argv[1] else [64, 64])))
    output = model(images)
    compare("logits", output)
    torch.nn.functional.cross_entropy(output, torch.tensor([1, 3])).backward()
    gradients(model)

with stage("saves, loads"):
    torch.save(model.state_dict(), f"{folder()}/weights.pt")
    loaded = timm.create_model(sys.argv[1], pretrained=False, num_classes=5)
    loaded.load_state_dict(torch.load(f"{folder()}/weights.pt"))
    with torch.no_grad():
        compare("logits of the loaded model", loaded.eval()(images))
