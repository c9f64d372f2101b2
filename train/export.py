"""Writes a model bundle (weights/FORMAT.md)."""
import json
import pathlib

import numpy as np
from safetensors.numpy import save


def write(directory, tokenizer, encoder, window, kinds, projection, transition, features, booster, training):
    """tokenizer: tokenizers.Tokenizer; encoder: RobertaModel; window: (length, stride); projection: [latent][hidden];
    transition: numpy tensors."""
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    latent = int(transition["kind_embedding"].shape[1])
    manifest = {"format": "foreloop-model", "format_version": 1, "text_rule": 1, "latent_size": latent,
                "window": {"length": window[0], "stride": window[1]},
                "pooling": {"projection": True, "normalize": True}, "actions": kinds, "activation": "relu",
                "features": list(features), "training": training}
    (directory / "model.json").write_text(json.dumps(manifest, indent=1) + "\n")
    tokenizer.save(str(directory / "tokenizer.json"))
    settings = encoder.config.to_dict()
    keep = ("model_type", "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
            "hidden_act", "max_position_embeddings", "type_vocab_size", "layer_norm_eps", "pad_token_id",
            "bos_token_id", "eos_token_id", "hidden_dropout_prob", "attention_probs_dropout_prob")
    (directory / "config.json").write_text(json.dumps(
        {"architectures": ["RobertaModel"], **{key: settings[key] for key in keep},
         "position_embedding_type": "absolute"}, indent=1) + "\n")
    weights = {name: tensor.detach().numpy().astype(np.float16) for name, tensor in encoder.state_dict().items()
               if tensor.is_floating_point()}
    weights["pooling.weight"] = projection.astype(np.float16)
    weights["pooling.bias"] = np.zeros(latent, np.float16)
    (directory / "encoder.safetensors").write_bytes(save(weights, metadata={"format": "pt"}))
    (directory / "transition.safetensors").write_bytes(save(transition))
    booster.save_model(str(directory / "ranker.json"))
