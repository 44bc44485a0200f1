#!/usr/bin/env python3
"""Makes networks of PyTorch at the sizes at which people use them, as litert-torch converts them: .tflite files with
random weights, to be timed by peers.py.

    pip install -r ../tests/litert/requirements-torch.txt
    python make_networks.py --out DIR [--only PATTERN]... [--quantize RECIPE]... [--list]

Of transformers whose layers are all alike some have fewer of them than published, and most have small vocabularies: what
a layer takes does not change. The corpus of tests/litert has the same families in sizes for tests. A network that
litert-torch cannot convert is named, and the others are made; files that are there are left as they are. With --quantize
each is quantized too, by a recipe of ai-edge-quantizer such as dynamic_wi8_afp32 or static_wi8_ai8; static ones are
calibrated with one input of noise.
"""

import argparse
import fnmatch
import logging
import pathlib
import sys
import time
import warnings

import litert_torch
import numpy as np
import torch

logging.disable(logging.WARNING)
warnings.filterwarnings("ignore")

# By name, the side of its images.
TORCHVISION = {
    "convnext_tiny": 224, "densenet121": 224, "efficientnet_b0": 224, "googlenet": 224, "mobilenet_v3_large": 224,
    "regnet_y_800mf": 224, "resnet18": 224, "shufflenet_v2_x1_0": 224, "swin_t": 224, "vit_b_32": 224,
    "deeplabv3_mobilenet_v3_large": 320, "lraspp_mobilenet_v3_large": 320,
}
TIMM = {
    "convnextv2_atto": 224, "deit_tiny_patch16_224": 224, "dla34": 224, "edgenext_small": 224, "efficientformerv2_s0": 224,
    "efficientvit_b1": 224, "efficientvit_m1": 224, "fastvit_t8": 256, "ghostnetv2_100": 224, "hrnet_w18_small": 224,
    "levit_128s": 224, "mixer_s16_224": 224, "mobilenetv4_conv_small": 224, "mobilenetv4_hybrid_medium": 224,
    "mobilevit_s": 256, "poolformer_s12": 224, "pvt_v2_b0": 224, "repvit_m0_9": 224, "res2net50_26w_4s": 224,
    "resnext50_32x4d": 224, "tiny_vit_5m_224": 224, "vit_small_patch16_224": 224,
    "botnet26t_256": 256, "caformer_s18": 224, "cait_xxs24_224": 224, "coat_lite_tiny": 224, "convmixer_768_32": 224,
    "crossvit_tiny_240": 240, "cspdarknet53": 224, "davit_tiny": 224, "dpn68": 224, "efficientformer_l1": 224,
    "efficientnet_lite0": 224, "efficientnetv2_rw_t": 224, "ese_vovnet19b_dw": 224, "fasternet_t0": 224, "fastvit_sa12": 224,
    "focalnet_tiny_srf": 224, "gernet_s": 224, "gmlp_s16_224": 224, "hardcorenas_a": 224, "hgnetv2_b0": 224,
    "hiera_tiny_224": 224, "inception_next_tiny": 224, "inception_v4": 224, "lcnet_100": 224, "mambaout_femto": 224,
    "maxvit_tiny_tf_224": 224, "mixnet_s": 224, "mnasnet_100": 224, "mobileone_s0": 224, "mvitv2_tiny": 224,
    "nextvit_small": 224, "nfnet_l0": 224, "pit_ti_224": 224, "poolformerv2_s12": 224, "rdnet_tiny": 224, "regnetx_004": 224,
    "repghostnet_050": 224, "repvgg_a0": 224, "res2next50": 224, "resmlp_12_224": 224, "resnest14d": 224, "rexnet_100": 224,
    "selecsls42b": 224, "shvit_s1": 224, "skresnet18": 224, "starnet_s1": 224, "swiftformer_xs": 224, "tinynet_a": 224,
    "tresnet_m": 224, "twins_svt_small": 224, "vgg11": 224, "visformer_tiny": 224, "volo_d1_224": 224, "xception41": 224,
    "xcit_nano_12_p8_224": 224,
}

VOCABULARY = {"vocab_size": 3000}
SMALL = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
TINY = {"hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024}
FOUR = {"hidden_size": 384, "num_hidden_layers": 4, "num_attention_heads": 6, "intermediate_size": 1536}
LARGE = {**VOCABULARY, "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8}
# By name: the class, the configuration's values, what goes in, and how long it is.
TRANSFORMERS = {
    "albert": ("AlbertModel", {**VOCABULARY, "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072,
                               "num_hidden_layers": 4}, "text", 128),
    "clip_vit_b32": ("CLIPVisionModel", {}, "image", 224),
    "convbert_small": ("ConvBertModel", {**VOCABULARY, **TINY, "num_hidden_layers": 6, "embedding_size": 128, "head_ratio": 2},
                       "text", 128),
    "deberta_small": ("DebertaV2Model", {**VOCABULARY, **SMALL, "num_attention_heads": 6, "relative_attention": True,
                                         "pos_att_type": ["p2c", "c2p"], "position_buckets": 256,
                                         "norm_rel_ebd": "layer_norm", "share_att_key": True}, "text", 128),
    "dinov2_small": ("Dinov2Model", {"hidden_size": 384, "num_hidden_layers": 4, "num_attention_heads": 6}, "image", 224),
    "distilbert": ("DistilBertModel", {}, "text", 64),
    "electra_small": ("ElectraModel", {**VOCABULARY, **TINY, "embedding_size": 128, "num_hidden_layers": 12}, "text", 128),
    "gpt2": ("GPT2LMHeadModel", {"vocab_size": 5000, "n_layer": 6}, "decoder", 64),
    "mamba": ("MambaModel", {**VOCABULARY, "hidden_size": 256, "num_hidden_layers": 4}, "decoder", 32),
    "minilm": ("BertModel", SMALL, "text", 128),
    "mobilebert": ("MobileBertModel", {}, "text", 128),
    "modernbert": ("ModernBertModel", {**VOCABULARY, **SMALL, "num_attention_heads": 6, "intermediate_size": 576, "pad_token_id": 0,
                                       "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}, "text", 128),
    "mpnet": ("MPNetModel", {**VOCABULARY, **SMALL}, "text", 128),
    "opt": ("OPTModel", {**VOCABULARY, "num_hidden_layers": 6}, "decoder", 64),
    "pythia_70m": ("GPTNeoXModel", {**VOCABULARY, "hidden_size": 512, "num_hidden_layers": 6, "num_attention_heads": 8,
                                    "intermediate_size": 2048}, "decoder", 64),
    "qwen2": ("Qwen2ForCausalLM", {**VOCABULARY, "hidden_size": 896, "num_hidden_layers": 4, "num_attention_heads": 14,
                                   "num_key_value_heads": 2, "intermediate_size": 4864}, "decoder", 64),
    "segformer_b0": ("SegformerForSemanticSegmentation", {}, "image", 512),
    "squeezebert": ("SqueezeBertModel", {**VOCABULARY, "num_hidden_layers": 6}, "text", 128),
    "t5_small": ("T5Model", {**VOCABULARY, "decoder_start_token_id": 0}, "pair", 64),
    "t5_small_encoder": ("T5EncoderModel", VOCABULARY, "text", 128),
    "wav2vec2_base": ("Wav2Vec2Model", {"num_hidden_layers": 4}, "sound", 16000),
    "whisper_tiny": ("WhisperEncoder", {"d_model": 384, "encoder_layers": 4, "encoder_attention_heads": 6,
                                        "encoder_ffn_dim": 1536}, "mel", 3000),
    "ast": ("ASTModel", {**FOUR, "max_length": 512}, "spectrogram", 512),
    "beit": ("BeitModel", {**FOUR, "image_size": 224}, "image", 224),
    "bigbird": ("BigBirdModel", {**VOCABULARY, **FOUR, "attention_type": "original_full"}, "text", 128),
    "bloom": ("BloomForCausalLM", {**VOCABULARY, "hidden_size": 512, "n_layer": 4, "n_head": 8}, "decoder", 64),
    "convnextv2": ("ConvNextV2Model", {"hidden_sizes": [40, 80, 160, 320], "depths": [2, 2, 6, 2]}, "image", 224),
    "dpt": ("DPTForDepthEstimation", {"hidden_size": 192, "num_hidden_layers": 4, "num_attention_heads": 3,
                                      "intermediate_size": 768, "backbone_out_indices": [0, 1, 2, 3],
                                      "neck_hidden_sizes": [48, 96, 192, 384], "fusion_hidden_size": 64, "image_size": 224},
            "image", 224),
    "falcon": ("FalconForCausalLM", LARGE, "decoder", 64),
    "funnel": ("FunnelBaseModel", {**VOCABULARY, "block_sizes": [2, 2], "d_model": 256, "n_head": 4, "d_head": 64,
                                   "d_inner": 1024}, "text", 128),
    "gemma2": ("Gemma2ForCausalLM", {**LARGE, "num_key_value_heads": 4, "head_dim": 64, "intermediate_size": 2048},
               "decoder", 64),
    "glpn": ("GLPNForDepthEstimation", {}, "image", 224),
    "hubert": ("HubertModel", {"num_hidden_layers": 3}, "sound", 16000),
    "llama": ("LlamaForCausalLM", {**LARGE, "num_key_value_heads": 4, "intermediate_size": 1408}, "decoder", 64),
    "mobilenet_v2": ("MobileNetV2Model", {}, "image", 224),
    "patchtst": ("PatchTSTModel", {"num_input_channels": 7, "context_length": 512, "d_model": 128}, "series", 512),
    "pegasus": ("PegasusModel", {**VOCABULARY, "d_model": 256, "encoder_layers": 2, "decoder_layers": 2,
                                 "encoder_ffn_dim": 1024, "decoder_ffn_dim": 1024, "encoder_attention_heads": 4,
                                 "decoder_attention_heads": 4}, "pair", 64),
    "phi": ("PhiForCausalLM", {**LARGE, "intermediate_size": 2048}, "decoder", 64),
    "roformer": ("RoFormerModel", {**VOCABULARY, **FOUR, "embedding_size": 384}, "text", 128),
    "rwkv": ("RwkvModel", {**VOCABULARY, "hidden_size": 256, "num_hidden_layers": 3, "context_length": 64}, "decoder", 32),
    "sew": ("SEWModel", {"num_hidden_layers": 3}, "sound", 16000),
    "swin2sr": ("Swin2SRForImageSuperResolution", {"embed_dim": 60, "depths": [2, 2], "num_heads": [6, 6], "image_size": 64},
                "image", 64),
    "yolos_tiny": ("YolosModel", {"hidden_size": 192, "num_hidden_layers": 6, "num_attention_heads": 3, "intermediate_size": 768,
                                  "image_size": [224, 224]}, "image", 224),
}


class Output(torch.nn.Module):
    """The tensors of what a network gives: a transformer's of all names, a segmentation's `out`, or the only one."""

    def __init__(self, model, names, **options):
        super().__init__()
        self.model, self.names, self.options = model, names, options

    def forward(self, *values):
        if not self.names:
            result = self.model(*values)
            return result["out"] if isinstance(result, dict) else result
        result = self.model(**dict(zip(self.names, values)), **self.options)
        return tuple(value for value in result.to_tuple() if torch.is_tensor(value))


def numbers(*shape):
    return torch.rand(*shape) * 2 - 1


def torchvision_network(name):
    import torchvision
    options = {"weights_backbone": None} if TORCHVISION[name] == 320 else {}
    if name == "googlenet":     # Drawing its weights as published takes long.
        options = {"init_weights": False, "aux_logits": False}
    model = torchvision.models.get_model(name, weights=None, **options)
    return Output(model, []), (numbers(1, 3, TORCHVISION[name], TORCHVISION[name]),)


def timm_network(name):
    import timm
    return timm.create_model(name, pretrained=False), (numbers(1, 3, TIMM[name], TIMM[name]),)


def transformer(name):
    import transformers
    from transformers.models.whisper.modeling_whisper import WhisperEncoder
    kind, values, what, length = TRANSFORMERS[name]
    made = WhisperEncoder if kind == "WhisperEncoder" else getattr(transformers, kind)
    config = made.config_class(**values)
    config._attn_implementation = "eager"
    config.use_cache = False
    model = made(config)
    ids = torch.randint(3, 190, (1, length))
    if what == "text":
        return Output(model, ["input_ids", "attention_mask"]), (ids, torch.ones(1, length, dtype=torch.long))
    if what == "decoder":
        return Output(model, ["input_ids"], use_cache=False), (ids,)
    if what == "pair":
        return Output(model, ["input_ids", "decoder_input_ids"], use_cache=False), (ids, torch.randint(3, 190, (1, 16)))
    names = {"sound": "input_values", "mel": "input_features", "image": "pixel_values", "spectrogram": "input_values",
             "series": "past_values"}
    shape = {"sound": (1, length), "mel": (1, 80, length), "image": (1, 3, length, length), "spectrogram": (1, length, 128),
             "series": (1, length, 7)}
    return Output(model, [names[what]]), (numbers(*shape[what]),)


def networks():
    """By name of the file, what makes it."""
    for names, network, prefix in ((TORCHVISION, torchvision_network, "torchvision"), (TIMM, timm_network, "timm"),
                                   (TRANSFORMERS, transformer, "transformers")):
        for name in names:
            yield f"{prefix}_{name}", lambda network=network, name=name: network(name)


def spread_statistics(model):
    """Those of batch normalization, which are 0 and 1 before training; and its factors, which some networks begin with 0, so
    that whole branches would be constant.
    """
    for module in model.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
            if module.affine and not module.weight.any():
                torch.nn.init.uniform_(module.weight, 0.1, 0.3)


def convert(name, make, path):
    """Writes a network."""
    torch.manual_seed(sum(name.encode()))
    model, inputs = make()
    spread_statistics(model)
    part = path.with_suffix(".part")
    litert_torch.convert(model.eval(), inputs).export(str(part))
    part.rename(path)


def quantize(path, recipe_name, to):
    """Writes a network quantized by a recipe."""
    from ai_edge_litert.interpreter import Interpreter
    from ai_edge_quantizer import quantizer, recipe
    tool = quantizer.Quantizer(str(path))
    tool.load_quantization_recipe(getattr(recipe, recipe_name)())
    result = None
    if tool.need_calibration:
        random, interpreter = np.random.default_rng(1), Interpreter(str(path))

        def drawn(details):
            shape, dtype = details["shape"], details["dtype"]
            if np.issubdtype(dtype, np.floating):
                return random.standard_normal(shape).astype(dtype)
            return random.integers(0, 1000, shape).astype(dtype)

        result = tool.calibrate({
            signature: [{key: drawn(it) for key, it in
                         interpreter.get_signature_runner(signature).get_input_details().items()}]
            for signature in interpreter.get_signature_list()})
    part = to.with_suffix(".part")
    tool.quantize(result).export_model(str(part))
    part.rename(to)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, help="the folder for the files")
    parser.add_argument("--only", action="append", metavar="PATTERN", help="names of networks, as a shell writes them")
    parser.add_argument("--quantize", action="append", default=[], metavar="RECIPE",
                        help="also quantized by this recipe of ai-edge-quantizer")
    parser.add_argument("--list", action="store_true", help="only say which there are")
    arguments = parser.parse_args()
    chosen = {name: make for name, make in networks()
              if not arguments.only or any(fnmatch.fnmatch(name, pattern) for pattern in arguments.only)}
    if arguments.list:
        print("\n".join(chosen))
        return 0
    if not arguments.out:
        parser.error("--out is missing")
    if not chosen:
        parser.error("no network has such a name")
    arguments.out.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name, make in chosen.items():
        path = arguments.out / f"{name}.tflite"
        files = {path: lambda make=make: convert(name, make, path)}
        for recipe in arguments.quantize:
            to = arguments.out / f"{name}.{recipe}.tflite"
            files[to] = lambda recipe=recipe, to=to: quantize(path, recipe, to)
        for file, make_file in files.items():
            if file.exists():
                continue
            start = time.monotonic()
            try:
                make_file()
            except Exception as error:      # Whatever a converter raises.
                failed += 1
                print(f"{file.stem}: not made: {(str(error) or repr(error)).splitlines()[0][:200]}", file=sys.stderr)
                continue
            print(f"{file.stem}: {file.stat().st_size / 1e6:.1f} MB, {time.monotonic() - start:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
