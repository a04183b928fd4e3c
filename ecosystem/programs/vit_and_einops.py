"""A vision transformer of vit-pytorch, whose layers are einops'."""

from stages import compare, folder, gradients, numbers, same_weights, stage

with stage("imports"):
    import torch
    from einops import einsum, rearrange, reduce, repeat
    from einops.layers.torch import Rearrange
    from vit_pytorch import ViT

with stage("builds"):
    model = ViT(image_size=32, patch_size=8, num_classes=5, dim=32, depth=2, heads=2, mlp_dim=64)
    same_weights(torch, model)
    images = torch.tensor(numbers(2, 3, 32, 32))

with stage("trains"):
    patches = rearrange(images, "b c (h p) (w q) -> b (h w) (p q c)", p=8, q=8)
    compare("patches", reduce(patches, "b n d -> b d", "mean"))
    compare("repeated", repeat(patches[:, 0], "b d -> b k d", k=2))
    compare("product", einsum(patches, patches, "b n d, b m d -> b n m"))
    compare("layer", Rearrange("b c h w -> b (c h) w")(images))
    output = model(images)
    compare("logits", output)
    torch.nn.functional.cross_entropy(output, torch.tensor([1, 3])).backward()
    gradients(model)

with stage("saves, loads"):
    torch.save(model.state_dict(), f"{folder()}/weights.pt")
    model.load_state_dict(torch.load(f"{folder()}/weights.pt"))
    with torch.no_grad():
        compare("logits of the loaded model", model(images))
