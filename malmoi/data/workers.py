"""Blocks of text → encoded blocks, in order, in this process or on several."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context, parent_process

import numpy as np
from numpy.typing import NDArray

from malmoi.errors import MalmoiError
from malmoi.text.encoding import SentenceEncoder
from malmoi.text.sentences import SplitterKind, sentence_splitter
from malmoi.text.tokenizer import Tokenizer

# Blocks handed out ahead of the one awaited, so that no worker waits for the reader.
_BLOCKS_AHEAD_PER_WORKER = 2


@dataclass(frozen=True)
class Block:
    """Some documents. Of a long one it holds a part: the last text may go on in the next block."""

    texts: list[str]
    goes_on: bool


@dataclass(frozen=True)
class EncodedBlock:
    """A block of texts as ids laid end to end. Sentences without tokens are left out."""

    ids: NDArray[np.uint32]  # (N,)
    word_starts: NDArray[np.bool_]  # (N,)
    sentence_lengths: NDArray[np.int64]  # tokens of each sentence
    text_lengths: NDArray[np.int64]  # sentences of each text
    goes_on: bool


class BlockEncoder:
    """Splits the texts of a block into sentences and encodes them."""

    def __init__(self, tokenizer: Tokenizer, sentences: SplitterKind) -> None:
        self._split = sentence_splitter(sentences)
        self._encoder = SentenceEncoder(tokenizer)

    def encode(self, block: Block) -> EncodedBlock:
        split = [self._split(text) for text in block.texts]
        encoded = self._encoder.encode([sentence for sentences in split for sentence in sentences])
        text_of = np.repeat(np.arange(len(split)), [len(sentences) for sentences in split])
        filled = encoded.lengths > 0
        text_lengths = np.bincount(text_of[filled], minlength=len(split))
        return EncodedBlock(encoded.ids, encoded.word_starts, encoded.lengths[filled], text_lengths, block.goes_on)


def encode_blocks(
    blocks: Iterator[Block], tokenizer: Tokenizer, sentences: SplitterKind, workers: int
) -> Iterator[EncodedBlock]:
    """Encode block after block; they come out in the order they went in."""
    if workers == 1:
        encoder = BlockEncoder(tokenizer, sentences)
        yield from map(encoder.encode, blocks)
        return
    pool = ProcessPoolExecutor(
        workers,
        # A fresh interpreter: forking a process that already runs the tokenizer's threads can hang.
        mp_context=get_context("spawn"),
        initializer=_start_worker,
        initargs=(tokenizer, sentences),
    )
    try:
        waiting: deque[Future[EncodedBlock]] = deque()
        for block in blocks:
            waiting.append(pool.submit(_encode_in_worker, block))
            if len(waiting) > workers * _BLOCKS_AHEAD_PER_WORKER:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise MalmoiError(
            "a worker process died, most likely for want of memory; run the same command again with fewer --workers, "
            "it goes on where it stopped."
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


_encoder: BlockEncoder


def _start_worker(tokenizer: Tokenizer, sentences: SplitterKind) -> None:
    global _encoder
    # An interrupt goes to the whole group of processes; the one that reads and writes decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The workers are the parallelism: threads inside each would only get in each other's way.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _encoder = BlockEncoder(tokenizer, sentences)


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work forever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _encode_in_worker(block: Block) -> EncodedBlock:
    return _encoder.encode(block)
