# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models on the meta device, whose values the optimizer reads."""

from __future__ import annotations

import json
import pathlib
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from ranks import Workers
from safetensors.torch import save_file
from torch import nn
from training import get_rank

import zero_opt.torch as zo
from zero_opt import ZeroOptError


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 6)
        self.base = nn.Linear(6, 6, bias=False).requires_grad_(False)
        self.register_buffer("scale", torch.full((), 0.5), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.linear(x) + self.base(x)) * self.scale


class Model(nn.Module):
    """The head is tied to the embedding, and the norm is frozen."""

    def __init__(self, layers: int = 3) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 6)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.norm = nn.LayerNorm(6).requires_grad_(False)
        self.head = nn.Linear(6, 7, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.embedding(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class Normed(nn.Module):
    """All its buffers are in the state_dict()."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


def make(seed: int = 5) -> Model:
    torch.manual_seed(seed)
    model = Model()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape))
    return model


def make_empty() -> Model:
    with zo.empty_parameters():
        model = Model()
    assert all(p.is_meta for p in model.parameters())
    assert model.head.weight is model.embedding.weight
    return model


def train(model: nn.Module, **arguments: Any) -> dict[str, torch.Tensor]:
    zero = arguments["zero"]
    units = {"units": [Layer]} if zero == 3 else {}
    optimizer = zo.AdamW(model, lr=0.1, max_norm=1.0, **units, **arguments)
    for step in range(2):
        torch.manual_seed(10 * step + get_rank())
        x = torch.randint(7, (4,))
        nn.functional.cross_entropy(model(x), x.roll(1)).backward()
        optimizer.step()
    state = optimizer.consolidate_model() if zero == 3 else model.state_dict()
    result = {name: value.clone() for name, value in state.items()}
    optimizer.close()
    return result


def read_on_first_rank(state: dict[str, torch.Tensor]) -> Callable[[str], torch.Tensor]:
    def read(name: str) -> torch.Tensor:
        assert get_rank() == 0
        return state[name]

    return read


def compare(zero: int, weights: str | None) -> bool:
    """Whether training ends with the bits of a model that had its values."""
    model = make()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    # Rank 0 has the values. The others have none of them.
    expected = train(model, zero=zero)
    given = read_on_first_rank(state) if weights is None else weights
    found = train(
        make_empty(), zero=zero, weights=given, device=str(model.norm.weight.device)
    )
    if zero == 3 and get_rank():
        return not found
    return all(torch.equal(found[name], value) for name, value in expected.items())


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_the_bits_of_a_loaded_model(workers: Workers, zero: int) -> None:
    assert workers.run(compare, zero, None) == [True, True]


def save(folder: pathlib.Path, form: str) -> pathlib.Path:
    """The values of make() in files of one of several forms."""
    state = make().state_dict()
    # As save_pretrained() writes them: a tied parameter under one of its names.
    state.pop("embedding.weight" if form == "file" else "head.weight")
    if form != "index":
        path = folder / "model.safetensors"
        save_file(state, path)
        return path if form == "file" else folder
    weight_map = {name: f"part{i % 2}.safetensors" for i, name in enumerate(state)}
    for part in set(weight_map.values()):
        chosen = {name: state[name] for name in state if weight_map[name] == part}
        save_file(chosen, folder / part)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}))
    return index


@pytest.mark.parametrize("form", ["file", "folder", "index"])
def test_safetensors(workers: Workers, tmp_path: pathlib.Path, form: str) -> None:
    path = save(tmp_path, form)
    assert workers.run(compare, 3, str(path)) == [True, True]


def test_one_rank(tmp_path: pathlib.Path) -> None:
    assert compare(3, str(save(tmp_path, "folder")))


def count_alive() -> int:
    """How many values were alive when the next ones were read."""
    seen: list[weakref.ref[torch.Tensor]] = []
    most = 0

    def read(name: str) -> torch.Tensor:
        nonlocal most
        most = max(most, sum(old() is not None for old in seen))
        seen.append(weakref.ref(found := torch.ones(shapes[name])))
        return found

    model = make_empty()
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    optimizer = zo.SGD(model, zero=3, units=[Layer], weights=read, device="cpu")
    owned = [p for layer in model.layers for p in layer.parameters()]
    # A rank has a slice in the step's memory, and nothing in the parameter.
    assert all(p.untyped_storage().nbytes() <= 4 for p in owned)
    optimizer.close()
    return most


def test_hooks_ties_and_buffers_stay() -> None:
    seen: list[torch.Tensor] = []
    with zo.empty_parameters(), zo.empty_parameters():
        model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2, bias=False))
        weight = nn.Parameter(torch.ones(2, 2))
        model[0].weight = weight
        model[1].weight = weight
    with torch.device("meta"):
        for module in model:
            module.register_buffer("scale", buffer := torch.ones(2))
    model[1]._buffers["scale"] = model[0]._buffers["scale"]
    assert model[0].weight is model[1].weight and buffer.is_meta
    model[0].weight.register_hook(seen.append)
    model[0].weight.kept = "yes"
    shapes = {"0.weight": (2, 2), "0.bias": (2,), "0.scale": (2,)}
    weights = {name: torch.ones(shape) for name, shape in shapes.items()}
    optimizer = zo.SGD(model, lr=0.1, weights=weights, device="cpu")
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert len(seen) == 1 and model[0].weight.kept == "yes"
    assert model[0].scale is model[1].scale
    assert not nn.Linear(1, 1).weight.is_meta
    optimizer.close()


def test_a_module_that_keeps_weak_references() -> None:
    model = nn.LSTM(3, 3)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    with zo.empty_parameters():
        empty = nn.LSTM(3, 3)
    zo.SGD(empty, weights=state, device="cpu").close()
    x = torch.ones(2, 1, 3)
    assert torch.equal(empty(x)[0], model(x)[0])


def test_another_thread_makes_modules_with_values() -> None:
    made: list[nn.Module] = []
    with zo.empty_parameters():
        thread = threading.Thread(target=lambda: made.append(nn.Linear(1, 1)))
        thread.start()
        thread.join()
        with pytest.raises(ZeroOptError, match="has no shape yet; make lazy modules"):
            nn.LazyLinear(2)
    assert not made[0].weight.is_meta


def start_with_values(rank: int) -> str:
    """What a rank says where rank |rank| has values, and the others have none."""
    model = make() if get_rank() == rank else make_empty()
    given = {} if get_rank() == rank else {"weights": make().state_dict(), "device": "cpu"}
    try:
        zo.SGD(model, timeout=5.0, **given)
    except ZeroOptError as error:
        return str(error)
    return "nothing was raised"


def start_without_weights() -> str:
    given = {} if get_rank() else {"weights": make().state_dict(), "device": "cpu"}
    try:
        zo.SGD(make_empty(), timeout=5.0, **given)
    except ZeroOptError as error:
        return str(error)
    return "nothing was raised"


def test_ranks_that_differ(workers: Workers) -> None:
    for rank in (0, 1):
        for found in workers.run(start_with_values, rank):
            assert "make the model in the same way on all ranks" in found
    for found in workers.run(start_without_weights):
        assert found.startswith("parameter 'embedding.weight' is on the meta device; give")


def test_names_are_those_of_the_model() -> None:
    """Also where the optimizer got parameters without names."""
    model = make_empty()
    state = make().state_dict()
    trained = list(model.layers.parameters())
    optimizer = zo.SGD(trained, model=model, weights=state.__getitem__, device="cpu")
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, state[name]), name
    optimizer.close()


def test_no_rank_has_two_parameters(workers: Workers) -> None:
    assert workers.run(count_alive) == [0, 0]


def test_buffers_on_the_meta_device(tmp_path: pathlib.Path) -> None:
    model = Normed()
    model.norm.running_mean += 3
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    with torch.device("meta"):
        empty = Normed()
    zo.SGD(empty, weights=tmp_path, device="cpu").close()
    for name, value in model.state_dict().items():
        assert torch.equal(empty.state_dict()[name], value)


def refuse(weights: Any, device: Any, kind: Callable[[], nn.Module]) -> str:
    try:
        model = kind()
        zo.SGD(model, zero=1, weights=weights, device=device)
    except ZeroOptError as error:
        # Nothing was lost.
        if kind is make_empty:
            state = make().state_dict()
            zo.SGD(model, weights=state.__getitem__, device="cpu").close()
        return str(error)
    return "nothing was raised"


def make_on_meta() -> nn.Module:
    with torch.device("meta"):
        return Model()


def fail_to_read(name: str) -> torch.Tensor:
    raise KeyError(name)


def read_another_shape(_: str) -> torch.Tensor:
    return torch.ones(2)


def read_integers(name: str) -> torch.Tensor:
    return make().state_dict()[name].to(torch.int8)


def read_no_tensor(_: str) -> Any:
    return 3


@pytest.mark.parametrize(
    "weights, device, kind, message",
    [
        (
            None,
            None,
            make_empty,
            "parameter 'embedding.weight' is on the meta device; give the optimizer the "
            "values of the model, such as weights='model.safetensors', or give the model "
            "memory with to_empty(device=...)",
        ),
        (
            "folder",
            None,
            make_empty,
            "parameter 'embedding.weight' is on the meta device; say where it goes, such "
            "as device='cpu'",
        ),
        (
            "folder",
            "meta",
            make_empty,
            "device is meta, expected the CPU or a GPU of CUDA",
        ),
        (
            "folder",
            None,
            make,
            "weights is for a model on the meta device, and this one has values; leave it "
            "out",
        ),
        (
            None,
            "cpu",
            make,
            "device is for a model on the meta device, and this one has values; leave it "
            "out",
        ),
        (
            "nowhere",
            "cpu",
            make_empty,
            "folder 'nowhere' has no model.safetensors and no "
            "model.safetensors.index.json; write them with save_pretrained(), or "
            "save_file() of safetensors",
        ),
        (
            "less",
            "cpu",
            make_empty,
            "'less' has no parameter 'layers.1.linear.bias'; its first tensor is "
            "'embedding.weight'",
        ),
        (
            "shape",
            "cpu",
            make_empty,
            "'norm.bias' in 'shape' has shape (2,), expected (6,)",
        ),
        (
            "folder",
            "cpu",
            make_on_meta,
            "'folder' has no buffer 'layers.0.scale', which is on the meta device; make "
            "the model within zo.empty_parameters(), where buffers have values",
        ),
    ],
)
def test_refused(
    workers: Workers,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    weights: Any,
    device: Any,
    kind: Callable[[], nn.Module],
    message: str,
) -> None:
    for name in ("folder", "nowhere"):
        (tmp_path / name).mkdir()
    save(tmp_path / "folder", "folder")
    state = make().state_dict()
    state.pop("head.weight")
    save_file(state | {"norm.bias": torch.ones(2)}, tmp_path / "shape")
    state.pop("layers.1.linear.bias")
    save_file(state, tmp_path / "less")
    given = weights
    if isinstance(weights, str):
        given = str(tmp_path / weights)
        message = message.replace(f"'{weights}'", f"'{given}'")
    assert workers.run(refuse, given, device, kind) == [message] * 2


@pytest.mark.parametrize(
    "weights, message",
    [
        (fail_to_read, "weights cannot be read: KeyError: 'layers.0.base.weight'"),
        (
            read_integers,
            "'layers.0.base.weight' has the values of torch.int8, expected float32, "
            "bfloat16, float16 or float64; convert the model first",
        ),
        (
            read_another_shape,
            "weights('layers.0.base.weight') is torch.Size([2]), expected a tensor of "
            "shape (6, 6)",
        ),
        (
            read_no_tensor,
            "weights('layers.0.base.weight') is int, expected a tensor of shape (6, 6)",
        ),
    ],
)
def test_a_function_that_fails_is_an_error_on_all_ranks(
    workers: Workers, weights: Any, message: str
) -> None:
    assert workers.run(refuse, weights, "cpu", make_empty) == [message] * 2


def test_a_file_that_is_none(workers: Workers, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"no tensors")
    for found in workers.run(refuse, str(path), "cpu", make_empty):
        assert found.startswith("weights cannot be read: SafetensorError")
    for found in workers.run(refuse, str(tmp_path / "gone"), "cpu", make_empty):
        assert found.startswith("weights cannot be read: FileNotFoundError")


def fine_tune(path: str) -> tuple[float, float]:
    """The loss of a tiny Llama that was loaded, and of one whose files the optimizer
    reads."""
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.models.llama.modeling_llama import LlamaDecoderLayer

    loaded = LlamaForCausalLM.from_pretrained(path)
    with zo.empty_parameters():
        model = LlamaForCausalLM(LlamaConfig.from_pretrained(path))
    optimizer = zo.AdamW(
        model, zero=3, units=[LlamaDecoderLayer], weights=path, device="cpu"
    )
    ids = torch.arange(10)[None]
    losses = tuple(m(input_ids=ids, labels=ids).loss.item() for m in (loaded, model))
    optimizer.close()
    return losses


def test_a_model_of_hugging_face(workers: Workers, tmp_path: pathlib.Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        vocab_size=50,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path)
    for loaded, read in workers.run(fine_tune, str(tmp_path)):
        assert loaded == read
