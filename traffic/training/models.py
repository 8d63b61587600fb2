"""The layers of four published models: parameters, and multiplications of a forward pass.

Everything is computed from the architectures as they were published; tests compare the totals with
the published ones. A layer is what has parameters and is computed at one time: a convolution
with the batch normalisation behind it, a fully connected layer, a half of a transformer block.

    AlexNet    Krizhevsky, "One weird trick for parallelizing convolutional neural networks",
               arXiv:1404.5997 (one tower)                                  61.1 million parameters
    VGG-16     Simonyan and Zisserman, "Very deep convolutional networks for large-scale image
               recognition", ICLR 2015, configuration D                    138.4 million
    ResNet-50  He et al., "Deep residual learning for image recognition", CVPR 2016, table 1
                                                                            25.6 million
    BERT-base  Devlin et al., "BERT: Pre-training of deep bidirectional transformers for language
               understanding", NAACL 2019, uncased, with pooler                 110 million

Images are 224 x 224 x 3 with 1000 classes; BERT reads sequences of 128 tokens.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

_CLASSES = 1000
_TOKENS = 128


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer: parameters, and multiply-accumulate operations of one sample's forward pass."""

    name: str
    parameters: int
    multiplications: int


@dataclass(frozen=True, slots=True)
class Model:
    """A model, its layers in the order of the forward pass."""

    name: str
    title: str
    layers: tuple[Layer, ...]

    @property
    def parameters(self) -> int:
        """Of all layers."""
        return sum(layer.parameters for layer in self.layers)

    @property
    def multiplications(self) -> int:
        """Multiply-accumulate operations of one sample's forward pass."""
        return sum(layer.multiplications for layer in self.layers)


def _convolution(name: str, inputs: int, outputs: int, kernel: int, side: int) -> Layer:
    """A convolution with biases whose output is side x side."""
    weights = inputs * outputs * kernel * kernel
    return Layer(name, weights + outputs, weights * side * side)


def _normalised(name: str, inputs: int, outputs: int, kernel: int, side: int) -> Layer:
    """A convolution without biases, and batch normalisation: a scale and a shift a channel."""
    weights = inputs * outputs * kernel * kernel
    return Layer(name, weights + 2 * outputs, (weights + outputs) * side * side)


def _connected(name: str, inputs: int, outputs: int) -> Layer:
    return Layer(name, inputs * outputs + outputs, inputs * outputs)


def _alexnet() -> Iterator[Layer]:
    yield _convolution("conv1", 3, 64, 11, 55)
    yield _convolution("conv2", 64, 192, 5, 27)
    yield _convolution("conv3", 192, 384, 3, 13)
    yield _convolution("conv4", 384, 256, 3, 13)
    yield _convolution("conv5", 256, 256, 3, 13)
    yield _connected("fc6", 256 * 6 * 6, 4096)
    yield _connected("fc7", 4096, 4096)
    yield _connected("fc8", 4096, _CLASSES)


def _vgg16() -> Iterator[Layer]:
    inputs, side = 3, 224
    for block, (outputs, convolutions) in enumerate(
        ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)), start=1
    ):
        for number in range(1, convolutions + 1):
            yield _convolution(f"conv{block}_{number}", inputs, outputs, 3, side)
            inputs = outputs
        side //= 2
    yield _connected("fc6", inputs * side * side, 4096)
    yield _connected("fc7", 4096, 4096)
    yield _connected("fc8", 4096, _CLASSES)


def _resnet50() -> Iterator[Layer]:
    yield _normalised("conv1", 3, 64, 7, 112)
    inputs = 64
    for stage, (width, blocks, side) in enumerate(
        ((64, 3, 56), (128, 4, 28), (256, 6, 14), (512, 3, 7)), start=2
    ):
        for block in range(1, blocks + 1):
            name = f"conv{stage}_{block}"
            # The first block of a stage halves the side, in its 3 x 3 convolution.
            side_in = side * 2 if block == 1 and stage > 2 else side
            yield _normalised(f"{name}a", inputs, width, 1, side_in)
            yield _normalised(f"{name}b", width, width, 3, side)
            yield _normalised(f"{name}c", width, 4 * width, 1, side)
            if block == 1:
                yield _normalised(f"{name}d", inputs, 4 * width, 1, side)
            inputs = 4 * width
    yield _connected("fc", inputs, _CLASSES)


def _bert_base() -> Iterator[Layer]:
    hidden, inner, blocks = 768, 3072, 12
    vocabulary, positions, segments = 30_522, 512, 2
    norm = 2 * hidden
    # Looked up, not multiplied; the normalisation is what there is to compute.
    yield Layer("embeddings", (vocabulary + positions + segments) * hidden + norm, _TOKENS * hidden)
    attention = 4 * (hidden * hidden + hidden) + norm
    scores = 2 * _TOKENS * _TOKENS * hidden
    feed_forward = 2 * hidden * inner + inner + hidden + norm
    for block in range(1, blocks + 1):
        yield Layer(f"block{block}.attention", attention, 4 * hidden * hidden * _TOKENS + scores)
        yield Layer(f"block{block}.feed-forward", feed_forward, 2 * hidden * inner * _TOKENS)
    yield _connected("pooler", hidden, hidden)


def _models() -> Iterator[Model]:
    yield Model("alexnet", "AlexNet", tuple(_alexnet()))
    yield Model("vgg16", "VGG-16", tuple(_vgg16()))
    yield Model("resnet50", "ResNet-50", tuple(_resnet50()))
    yield Model("bert-base", "BERT-base", tuple(_bert_base()))


MODELS: Mapping[str, Model] = MappingProxyType({model.name: model for model in _models()})
"""The models by name."""
