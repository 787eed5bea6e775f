"""Models from the hub: its local cache first asked, and nothing else when offline."""

from __future__ import annotations

import difflib
from logging import ERROR, getLogger
from pathlib import Path

from reffree.encoders.options import ModelSettings
from reffree.encoders.packages import PACKAGED, is_installed
from reffree.encoders.registry import ALIASES
from reffree.errors import EncoderError, UnknownNameError

NEVER_DOWNLOADED = (
    *("*.h5", "*.msgpack", "*.ot", "*.onnx", "*.gguf", "*.pt", "*.pth", "*.ckpt", "*.pkl"),
    *("onnx/*", "openvino/*"),
)
PICKLES = ("*.bin",)
CODE = ("*.py",)


def hub_folder(name: str, *, offline: bool, settings: ModelSettings) -> Path:
    """Take a model from the hub's local cache, or download it unless offline."""
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    model, revision = _on_the_hub(name)
    unread = [
        *NEVER_DOWNLOADED,
        *(() if settings.allow_pickle else PICKLES),
        *(() if settings.trust_remote_code else CODE),
    ]
    # Its retries are told of in the sentence that follows if they are in vain.
    getLogger("huggingface_hub").setLevel(ERROR)
    try:
        path = snapshot_download(
            model, revision=revision, local_files_only=offline, ignore_patterns=unread
        )
    except HFValidationError:
        raise UnknownNameError("encoder", name, ALIASES) from None
    except LocalEntryNotFoundError:
        at = "" if revision is None else f" --revision {revision}"
        remedy = (
            f"download it on a machine with network access (hf download {model}{at}), or give a "
            "folder"
            if offline
            else "check the network, or give the path of a downloaded folder"
        )
        ready = ", ".join(alias for alias in PACKAGED if is_installed(alias))
        near = difflib.get_close_matches(name, ALIASES, n=1)
        hint = f" Did you mean {near[0]!r}?" if near and name not in ALIASES else ""
        raise EncoderError(
            f"encoder {name!r}: found neither a folder of that name nor {model!r} in "
            f"{constants.HF_HUB_CACHE}"
            f"{' (offline)' if offline else ', and the model hub does not answer'}; "
            f"expected a downloaded model; {remedy}. Names that need no download: {ready}.{hint}"
        ) from None
    except (HfHubHTTPError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise EncoderError(
            f"encoder {name!r}: the model hub refused {model!r} ({reason}); expected a public "
            f"model id or a folder; check the spelling, or use one of {', '.join(ALIASES)}"
        ) from None
    return Path(path)


def is_downloaded(name: str) -> bool:
    """Whether a hub model's weights are on this disk; connects to nothing."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    model, revision = _on_the_hub(name)
    try:
        path = Path(snapshot_download(model, revision=revision, local_files_only=True))
    except LocalEntryNotFoundError:
        return False
    return any(path.rglob("*.safetensors"))


def _on_the_hub(name: str) -> tuple[str, str | None]:
    alias = ALIASES.get(name)
    return (name, None) if alias is None else (alias.model, alias.revision)
