"""One small form each of 52 timm architectures: built, run forward and backward, and compared.
`python timm_architectures.py PART` runs the first, second, third or fourth quarter of them.

Batch normalisations are handed contiguous gradients: of one image, in evaluation mode, PyTorch's gradient of
their bias is wrong on the CPU where the incoming gradient is transposed, as it is in levit, xcit and lambda
networks. Finite differences in float64 agree with Tenfold's.

The numbers to agree with are PyTorch's in float64: in float32 its gradients of visformer_tiny and
lambda_resnet26t are further from those than the tolerance."""

import os
import sys
import zlib

import numpy as np
from stages import compare, stage, untimed

with stage("imports"):
    import timm
    import torch

NAMES = """
    resnet10t resnext26ts legacy_seresnet18 mobilenetv2_035 mobilenetv3_small_050 efficientnet_lite0
    tf_efficientnetv2_b0 mnasnet_small fbnetc_100 ghostnet_050 hrnet_w18_small regnety_002 dla46_c
    selecsls42 res2net50_14w_8s convnext_atto convnextv2_atto vit_tiny_patch16_224 cait_xxs24_224
    pvt_v2_b0 poolformer_s12 mixer_s32_224 gmlp_ti16_224 resmlp_12_224 edgenext_xx_small mobilevit_xxs
    mobilevitv2_050 repvgg_a0 rexnet_100 tinynet_e lcnet_035 coat_lite_tiny fastvit_t8 nest_tiny
    pit_ti_224 visformer_tiny botnet26t_256 skresnet18 resnest14d starnet_s1 mambaout_femto
    swin_tiny_patch4_window7_224 swinv2_cr_tiny_ns_224 tnt_s_patch16_224 twins_pcpvt_small volo_d1_224
    maxvit_rmlp_pico_rw_256 hardcorenas_a densenet121 levit_128s xcit_nano_12_p16_224 lambda_resnet26t
""".split()  # noqa: SIM905


def contiguous_gradient(layer, inputs, output):
    output.register_hook(lambda gradient: gradient.contiguous())


def build(name):
    """A model for images of 64 by 64, or of its own size where it is fixed; and the size."""
    try:
        return timm.create_model(name, pretrained=False, num_classes=5, img_size=64), 64
    except TypeError:
        return timm.create_model(name, pretrained=False, num_classes=5), 64
    except Exception:
        model = timm.create_model(name, pretrained=False, num_classes=5)
        return model, model.default_cfg["input_size"][-1]


def passed(model, image):
    """The output for an image, and the first gradients of each parameter."""
    model.zero_grad()
    output = model.eval()(image)
    output = output[0] if isinstance(output, (tuple, list)) else output
    torch.nn.functional.cross_entropy(output, torch.tensor([1])).backward()
    parts = [each.grad.numpy().ravel()[:40] for each in model.parameters() if each.grad is not None]
    return output, np.concatenate(parts)


for name in NAMES[int(sys.argv[1]) - 1 :: 4]:
    with stage("builds"):
        model, size = build(name)
        random = np.random.RandomState(zlib.crc32(name.encode()))
        with torch.no_grad():
            for key, parameter in model.named_parameters():
                drawn = (random.randn(*parameter.shape) * 0.05).astype("float32")
                is_scale = parameter.ndim == 1 and key.endswith("weight")
                parameter.copy_(torch.tensor(drawn + np.float32(is_scale)))
        for layer in model.modules():
            if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm):
                layer.register_forward_hook(contiguous_gradient)
    with stage("trains"):
        image = torch.tensor(random.randn(1, 3, size, size).astype("float32"))
        output, gradients = passed(model, image)
        if os.environ["ECOSYSTEM_ENGINE"] == "pytorch":
            with untimed():
                output, gradients = passed(model.double(), image.double())
        compare(f"{name}: logits", output)
        compare(f"{name}: gradients", gradients, "gradient")
    print(name, flush=True)
