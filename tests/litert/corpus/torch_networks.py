"""Networks of PyTorch (torchvision, timm, transformers, litert-torch's own language models) with random weights, as
litert-torch converts them and ai-edge-quantizer quantizes them.  requirements-torch.txt is what this family needs.

Variants:
  float32
  float16w             float16 weights behind DEQUANTIZE
  dynamic              int8 weights, float activations
  dynamic4             int4 weights, float activations
  weights8, weights4   int8 or int4 weights behind DEQUANTIZE
  int8                 int8 throughout, float32 input and output
  int16                int16 activations, int8 weights
"""

import importlib
import logging
import pathlib
import tempfile
import warnings

import numpy as np
import torch

from . import judge

logging.disable(logging.WARNING)
warnings.filterwarnings("ignore")
torch.set_num_threads(1)

# By network, what makes it small enough to test with.
TORCHVISION = {name: {} for name in """
    densenet121 efficientnet_b0 inception_v3 lraspp_mobilenet_v3_large mnasnet0_5 mobilenet_v3_small regnet_y_400mf resnet18
    shufflenet_v2_x0_5 squeezenet1_1""".split()}
TORCHVISION["swin_t"] = TORCHVISION["swin_v2_t"] = {"depths": [2, 2], "num_heads": [3, 6]}
TIMM = {
    "beit_base_patch16_224": {"img_size": 64, "depth": 2, "embed_dim": 64, "num_heads": 4},
    "cait_xxs24_224": {"img_size": 64, "depth": 2}, "coat_tiny": {"img_size": 64}, "convnextv2_atto": {},
    "edgenext_xx_small": {}, "efficientformerv2_s0": {"img_size": 64}, "eva02_tiny_patch14_224": {"img_size": 56, "depth": 2},
    "ghostnetv2_100": {}, "levit_128s": {"img_size": 64}, "mobilenetv4_conv_small": {}, "mobileone_s0": {},
    "mobilevit_xxs": {}, "pit_ti_224": {"img_size": 64}, "pvt_v2_b0": {}, "repvit_m0_9": {},
    "tiny_vit_5m_224": {"img_size": 64}, "vit_tiny_patch16_224": {"img_size": 64, "depth": 2},
    "xcit_nano_12_p16_224": {"img_size": 64, "depth": 2},
}

SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
TEXT = {**SMALL, "vocab_size": 200, "max_position_embeddings": 64}
DECODER = {**TEXT, "num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
IMAGE = {**SMALL, "image_size": 32, "patch_size": 8}
SOUND = {**SMALL, "conv_dim": [32] * 3, "conv_stride": [5, 2, 2], "conv_kernel": [10, 3, 3], "num_feat_extract_layers": 3,
         "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4}
BART = {"vocab_size": 200, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
        "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
# Model class: (configuration's values, what goes in, what is taken of the result).
TRANSFORMERS = {
    "AlbertModel": ({**TEXT, "embedding_size": 32}, "text"), "BertModel": (TEXT, "text"), "BartModel": (BART, "pair"),
    "BertForQuestionAnswering": (TEXT, "text"),
    "BlenderbotSmallModel": (BART, "pair"),
    "CanineModel": ({**TEXT, "num_hash_buckets": 64, "local_attention_ropes": 0}, "text"),
    "CLIPTextModel": ({**TEXT, "eos_token_id": 199}, "text"), "CLIPVisionModel": (IMAGE, "image"),
    "ConvBertModel": ({**TEXT, "embedding_size": 32}, "text"),
    "DebertaV2Model": ({**TEXT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]}, "text"),
    "DeiTModel": (IMAGE, "image"), "Dinov2Model": (IMAGE, "image"),
    "DistilBertModel": ({"vocab_size": 200, "dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128,
                         "max_position_embeddings": 64}, "text"),
    "ElectraModel": ({**TEXT, "embedding_size": 32}, "text"), "FalconModel": ({**TEXT, "num_attention_heads": 4}, "decoder"),
    "FunnelModel": ({"vocab_size": 200, "block_sizes": [1, 1], "d_model": 64, "n_head": 4,
                                                   "d_head": 16, "d_inner": 128}, "text"),
    "Gemma2Model": ({**DECODER, "head_dim": 16}, "decoder"), "Gemma3TextModel": ({**DECODER, "head_dim": 16}, "decoder"),
    "GPT2LMHeadModel": ({"vocab_size": 200, "n_positions": 64, "n_embd": 64, "n_layer": 2, "n_head": 4}, "decoder"),
    "GPTNeoXModel": (TEXT, "decoder"), "HieraModel": ({"image_size": [64, 64]}, "image64"),
    "HubertModel": (SOUND, "sound"),
    "LayoutLMModel": (TEXT, "text"), "LlamaForCausalLM": (DECODER, "decoder"), "LongT5EncoderModel": ({
        "vocab_size": 200, "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4, "local_radius": 7}, "text"),
    "MambaModel": ({"vocab_size": 200, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4}, "decoder"),
    "MistralModel": (DECODER, "decoder"), "MobileBertModel": ({**TEXT, "embedding_size": 32, "true_hidden_size": 32,
                                                               "intra_bottleneck_size": 32}, "text"),
    "ModernBertModel": ({**TEXT, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}, "text"),
    "MPNetModel": (TEXT, "text"),
    "OPTModel": ({**TEXT, "ffn_dim": 128, "word_embed_proj_dim": 64}, "decoder"), "PhiModel": (DECODER, "decoder"),
    "Qwen2ForCausalLM": (DECODER, "decoder"), "Qwen3ForCausalLM": ({**DECODER, "head_dim": 16}, "decoder"),
    "RegNetModel": ({"hidden_sizes": [16, 32, 48, 64], "depths": [1, 1, 1, 1], "groups_width": 16}, "image"),
    "RobertaModel": ({**TEXT, "pad_token_id": 0}, "text"), "RoFormerModel": (TEXT, "text"),
    "SegformerForSemanticSegmentation": ({"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1], "decoder_hidden_size": 32}, "image64"),
    "SiglipVisionModel": (IMAGE, "image"), "SqueezeBertModel": ({**TEXT, "embedding_size": 64}, "text"), "SwiftFormerModel": ({}, "image64"),
    "Swin2SRModel": ({"image_size": 16, "embed_dim": 24, "depths": [2, 2], "num_heads": [2, 2], "window_size": 4}, "image16"),
    "Swin2SRForImageSuperResolution": ({"image_size": 16, "embed_dim": 24, "depths": [2, 2], "num_heads": [2, 2], "window_size": 4}, "image16"),
    "T5EncoderModel": ({"vocab_size": 200, "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4}, "text"),
    "T5Model": ({"vocab_size": 200, "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0}, "pair"),
    "ViTModel": (IMAGE, "image"), "Wav2Vec2Model": (SOUND, "sound"),
    "WhisperEncoder": ({"d_model": 64, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 128,
                        "max_source_positions": 50, "num_mel_bins": 20}, "mel"),
    "XGLMModel": ({"vocab_size": 200, "d_model": 32, "ffn_dim": 64, "num_layers": 2, "attention_heads": 4, "max_position_embeddings": 64}, "decoder"),
    "YolosModel": ({**SMALL, "image_size": [32, 64], "patch_size": 8, "num_detection_tokens": 5}, "yolos"),
}


def seeded(name):
    torch.manual_seed(sum(name.encode()))


class Output(torch.nn.Module):
    """The tensors of what a transformer gives."""

    def __init__(self, model, names, **options):
        super().__init__()
        self.model, self.names, self.options = model, names, options

    def forward(self, *values):
        result = self.model(**dict(zip(self.names, values)), **self.options)
        return tuple(value for value in result.to_tuple() if torch.is_tensor(value))


class First(torch.nn.Module):
    """What a segmentation network is for."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, image):
        return self.model(image)["out"]


def image(side):
    return torch.rand(1, 3, side, side) * 2 - 1


def torchvision_network(name):
    import torchvision
    seeded(name)
    swin = TORCHVISION[name]
    if swin:
        model = torchvision.models.swin_transformer.SwinTransformer(
            [4, 4], 48, window_size=[4, 4], mlp_ratio=2.0, num_classes=10,
            block=torchvision.models.swin_transformer.SwinTransformerBlockV2 if "v2" in name else None, **swin)
    elif name.startswith("lraspp"):
        model = First(torchvision.models.get_model(name, weights=None, weights_backbone=None))
    else:
        # Drawing its weights as published takes long.
        options = {"init_weights": False} if name == "inception_v3" else {}
        model = torchvision.models.get_model(name, weights=None, num_classes=10, **options)
    return model, (image(96 if name == "inception_v3" else 64),)


def timm_network(name):
    import timm
    seeded(name)
    options = TIMM[name]
    return timm.create_model(name, pretrained=False, num_classes=10, **options), (image(options.get("img_size", 64)),)


def transformer(name):
    import transformers
    seeded(name)
    made = getattr(transformers, name, None)
    if name == "WhisperEncoder":
        from transformers.models.whisper.modeling_whisper import WhisperEncoder as made
    values, what = TRANSFORMERS[name]
    config = made.config_class(**values)
    config._attn_implementation = "eager"
    config.use_cache = False
    model = made(config)
    ids = torch.randint(3, 190, (1, 16))
    if what == "pair":
        return Output(model, ["input_ids", "decoder_input_ids"], use_cache=False), (ids, torch.randint(3, 190, (1, 8)))
    if what == "text":
        mask = torch.ones(1, 16, dtype=torch.long)
        mask[0, 12:] = 0
        return Output(model, ["input_ids", "attention_mask"]), (ids, mask)
    if what == "decoder":
        return Output(model, ["input_ids"], use_cache=False), (ids,)
    if what == "sound":
        return Output(model, ["input_values"]), (torch.rand(1, 800) * 2 - 1,)
    if what == "mel":
        return Output(model, ["input_features"]), (torch.rand(1, 20, 100) * 2 - 1,)
    sides = (32, 64) if what == "yolos" else (int(what[5:] or 32),) * 2
    return Output(model, ["pixel_values"]), (torch.rand(1, 3, *sides) * 2 - 1,)


RECIPES = {"dynamic": "dynamic_wi8_afp32", "dynamic4": "dynamic_wi4_afp32", "weights8": "weight_only_wi8_afp32",
           "weights4": "weight_only_wi4_afp32", "int8": "static_wi8_ai8", "int16": "static_wi8_ai16"}


def quantized(model, variant, calibration):
    from ai_edge_quantizer import quantizer, recipe
    tool = quantizer.Quantizer(model)
    tool.load_quantization_recipe(getattr(recipe, RECIPES[variant])())
    result = None
    if tool.need_calibration:
        from ai_edge_litert.interpreter import Interpreter
        signature, = Interpreter(model_content=bytes(model)).get_signature_list()
        result = tool.calibrate({signature: calibration})
    return bytes(tool.quantize(result).quantized_model)


def converted(module, arguments, variant="float32"):
    import litert_torch
    model = litert_torch.convert(module.eval(), arguments)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.tflite"
        model.export(str(path))
        data = path.read_bytes()
    inputs = [value.numpy() for value in arguments]
    if variant != "float32":
        names = [f"args_{i}" for i in range(len(inputs))]
        data = quantized(bytearray(data), variant, [dict(zip(names, inputs))])
    return judge.Made(data, [judge.Run(as_asked(data, inputs))], source="converter", variant=variant)


def as_asked(data, inputs):
    """Inputs in the types of the model: litert-torch makes 32-bit integers of 64-bit ones, the quantizer quantizes inputs."""
    from ai_edge_litert.interpreter import Interpreter
    details = Interpreter(model_content=data).get_input_details()
    return [judge.stored(value, detail) for value, detail in zip(inputs, details)]


# Language models of litert-torch: the module and the class, and what gives a configuration that is small.
LANGUAGE = {
    "gemma3": ("gemma3.decoder", "Decoder", "get_fake_decoder_config_1b"),
    "llama": ("llama.llama", "Llama", "get_fake_model_config"), "phi2": ("phi.phi2", "Phi2", "get_fake_model_config"),
    "qwen3": ("qwen.qwen3", "Qwen3", "get_fake_model_config"), "smollm": ("smollm.smollm", "SmolLM", "get_fake_model_config"),
}
CACHE_LENGTH = 64


def language_model(name, quantization):
    """Two signatures: of eight tokens, and of the one that follows them. Caches go in and come out."""
    from litert_torch.generative.utilities import converter, export_config
    module, kind, configuration = LANGUAGE[name]
    module = importlib.import_module(f"litert_torch.generative.examples.{module}")
    config = getattr(module, configuration)()
    config.max_seq_len = CACHE_LENGTH
    for block in range(config.num_layers):
        config.block_config(block).ff_config.intermediate_size = 64
    config.embedding_dim = min(config.embedding_dim, 512)
    seeded(name)
    model = getattr(module, kind)(config, 0).eval()
    for parameter in model.parameters():        # some are whatever was in memory
        noise = torch.randn(parameter.shape)
        parameter.data = noise * 0.05 if parameter.ndim > 1 else 1 + noise * 0.1
    export = export_config.ExportConfig()
    export.mask_as_input = True
    with tempfile.TemporaryDirectory() as folder:
        path = converter.convert_to_tflite(model, folder, name, 8, CACHE_LENGTH, quantize=quantization, config=config,
                                           export_config=export)
        data = pathlib.Path(path).read_bytes()
    from ai_edge_litert.interpreter import Interpreter
    interpreter, runs = Interpreter(model_content=data), []
    rng = np.random.default_rng(1)
    for signature in sorted(interpreter.get_signature_list(), reverse=True):
        first = 0 if signature.startswith("prefill") else 8
        inputs = interpreter.get_signature_runner(signature).get_input_details()
        runs.append(judge.Run([language_input(key, inputs[key], first, rng) for key in sorted(inputs)], signature))
    return judge.Made(data, runs, source="converter", variant=quantization)


def language_input(name, details, first, rng):
    shape, dtype = details["shape"], details["dtype"]
    if name.endswith("tokens"):
        return rng.integers(0, 100, shape).astype(dtype)
    if name.endswith("input_pos"):
        return np.arange(first, first + shape[0]).astype(dtype)
    if name.endswith("mask"):
        rows, columns = np.indices(shape[-2:])
        return np.where(columns <= rows + first, 0, -np.inf).astype(dtype).reshape(shape)
    return rng.standard_normal(shape).astype(dtype)


def all_cases():
    for names, network, prefix in ((TORCHVISION, torchvision_network, "torchvision"), (TIMM, timm_network, "timm"),
                                   (TRANSFORMERS, transformer, "transformers")):
        for name in names:
            yield f"{prefix}_{name.lower()}", lambda network=network, name=name: converted(*network(name))
    for name, network in (("resnet18", torchvision_network), ("mobilenet_v3_small", torchvision_network),
                          ("mobilevit_xxs", timm_network), ("vit_tiny_patch16_224", timm_network), ("BertModel", transformer),
                          ("LlamaForCausalLM", transformer), ("SegformerForSemanticSegmentation", transformer)):
        for variant in RECIPES:
            yield (f"torch_{name.lower()}.{variant}",
                   lambda network=network, name=name, variant=variant: converted(*network(name), variant))
    for name in LANGUAGE:
        for quantization in ("none", "dynamic_int8", "weight_only_int8", "fp16", "dynamic_int4_block32"):
            yield (f"language_{name}.{quantization}",
                   lambda name=name, quantization=quantization: language_model(name, quantization))
