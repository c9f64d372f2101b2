"""The C library for Python by ctypes: what train/ and tests/differential call.

    import foreloop_ctypes as fl
    lib = fl.load()                      # FORELOOP_LIBRARY, or build/src/libforeloop.so of this checkout
    lib.canonical_text("...")            # methods mirror the C functions, with numpy arrays and exceptions

Only the standard library and numpy are needed.
"""

import ctypes as c
import json
import os
import pathlib

import numpy as np

OK, END = 0, 1


class Error(Exception):
    """A foreloop_error: code name, message, and position (kind, value)."""

    def __init__(self, code, message, position=(0, 0)):
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.position = code, message, position


class _Error(c.Structure):
    _fields_ = [("code", c.c_int), ("position_kind", c.c_int), ("position", c.c_uint64), ("message", c.c_char * 496)]


class _Options(c.Structure):
    _fields_ = [("size", c.c_size_t), ("allocator", c.c_void_p), ("read_into_memory", c.c_int),
                ("tier", c.c_int), ("precision", c.c_int), ("cpu_features_off", c.c_uint), ("use_amx", c.c_int)]


TIERS = {"best": 0, "ref": 1, "avx2": 2, "avx512": 3}
PRECISIONS = {"f32": 0, "bf16": 1, "int8": 2, "int8_row": 3}
CPU_FEATURES = {"avx2": 1, "avx512": 2, "avx_vnni": 4, "avx512_vnni": 8, "avx512_bf16": 16, "amx_bf16": 32,
                "amx_int8": 64}


def _options(tier="best", precision="f32", cpu_features_off=(), use_amx=False):
    """foreloop_options from names or, for the tier, its number; cpu_features_off is a list of names."""
    off = sum(CPU_FEATURES[name] for name in cpu_features_off)
    return c.byref(_Options(c.sizeof(_Options), None, 0, TIERS.get(tier, tier), PRECISIONS[precision], off, int(use_amx)))


class _TokenizeOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("no_special", c.c_int), ("strict", c.c_int), ("as_file", c.c_int),
                ("window_length", c.c_size_t), ("window_overlap", c.c_size_t)]


class _VocabularyOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("allocator", c.c_void_p), ("read_into_memory", c.c_int), ("tier", c.c_int),
                ("add_prefix_space", c.c_int), ("keep_case", c.c_int), ("accents", c.c_int), ("join_chinese", c.c_int)]


ACCENTS = {"by_case": 0, "strip": 1, "keep": 2}


class _Window(c.Structure):
    _fields_ = [("size", c.c_size_t), ("ids", c.POINTER(c.c_uint32)), ("offsets", c.POINTER(c.c_size_t)),
                ("count", c.c_size_t), ("content_begin", c.c_size_t), ("content_end", c.c_size_t)]


class _GbdtOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("allocator", c.c_void_p), ("has_base_score", c.c_int),
                ("base_score", c.c_float), ("tree_weights", c.POINTER(c.c_float)), ("tree_weight_count", c.c_size_t),
                ("num_class", c.c_size_t), ("num_parallel_tree", c.c_size_t), ("objective", c.c_char_p),
                ("feature_names", c.POINTER(c.c_char_p)), ("feature_name_count", c.c_size_t),
                ("iteration_begin", c.c_size_t), ("iteration_end", c.c_size_t), ("tier", c.c_int)]


class _GbdtInfo(c.Structure):
    _fields_ = [("size", c.c_size_t), ("feature_count", c.c_size_t), ("output_count", c.c_size_t),
                ("tree_count", c.c_size_t), ("max_depth", c.c_size_t), ("objective", c.c_char_p),
                ("notes", c.c_char_p), ("prediction_count", c.c_size_t), ("iteration_count", c.c_size_t),
                ("best_iteration", c.c_int64), ("has_gain", c.c_int), ("has_cover", c.c_int),
                ("tier", c.c_int)]


class _GbdtRows(c.Structure):
    _fields_ = [("size", c.c_size_t), ("values", c.POINTER(c.c_float)), ("row_count", c.c_size_t),
                ("column_count", c.c_size_t), ("row_stride", c.c_size_t), ("column_stride", c.c_size_t),
                ("has_missing", c.c_int), ("missing", c.c_float)]


class _RankerData(c.Structure):
    _fields_ = [("size", c.c_size_t), ("rows", c.POINTER(_GbdtRows)), ("groups", c.POINTER(c.c_size_t)),
                ("group_count", c.c_size_t), ("seconds", c.POINTER(c.c_double)), ("relevances", c.POINTER(c.c_float))]


_Progress = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_size_t, c.c_size_t)


class _RankerOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("allocator", c.c_void_p), ("tier", c.c_int), ("objective", c.c_int),
                ("pairs", c.c_int), ("pair_count", c.c_size_t), ("linear_gain", c.c_int),
                ("keep_gradient_scale", c.c_int), ("keep_pair_scale", c.c_int), ("grades", c.c_uint),
                ("grade_power", c.c_float), ("rounds", c.c_size_t), ("depth", c.c_size_t), ("bins", c.c_size_t),
                ("eta", c.c_float), ("lambda_", c.c_float), ("min_child_weight", c.c_float),
                ("min_split_gain", c.c_float), ("subsample", c.c_float), ("columns_by_tree", c.c_float),
                ("columns_by_node", c.c_float), ("seed", c.c_uint64), ("base_score", c.c_float),
                ("start", c.c_void_p), ("feature_names", c.POINTER(c.c_char_p)), ("feature_name_count", c.c_size_t),
                ("parallel", c.c_void_p), ("progress", _Progress), ("progress_user", c.c_void_p)]


RANKER_OBJECTIVES = {"ndcg": 0, "pairwise": 1, "squared_error": 2}
RANKER_PAIRS = {"top": 0, "mean": 1}
GBDT_OUTPUTS = {"prediction": 0, "margin": 1, "leaf_sum": 2, "leaf_index": 3}
IMPORTANCE_KINDS = ["weight", "gain", "cover", "total_gain", "total_cover"]


class _Argument(c.Structure):
    _fields_ = [("name", c.c_char_p), ("text", c.c_char_p), ("number", c.c_double)]


class _Action(c.Structure):
    _fields_ = [("kind", c.c_char_p), ("arguments", c.POINTER(_Argument)), ("argument_count", c.c_size_t)]


class _RecordsOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("allocator", c.c_void_p), ("full_trace", c.c_int)]


class _Record(c.Structure):
    _fields_ = [("size", c.c_size_t), ("line", c.c_uint64), ("workload", c.c_int64), ("target", c.c_char_p),
                ("actions", c.POINTER(_Action)), ("action_count", c.c_size_t),
                ("instructions", c.POINTER(c.c_uint32)), ("seconds", c.POINTER(c.c_double)),
                ("seconds_count", c.c_size_t), ("unknown_instructions", c.c_size_t)]


class _ModelInfo(c.Structure):
    _fields_ = [("size", c.c_size_t), ("fingerprint", c.c_uint64), ("latent_size", c.c_size_t),
                ("kind_count", c.c_size_t), ("feature_count", c.c_size_t), ("tree_count", c.c_size_t),
                ("text_rule", c.c_uint32), ("manifest", c.c_char_p), ("manifest_length", c.c_size_t),
                ("network_parameters", c.c_size_t)]


class _SpaceInfo(c.Structure):
    _fields_ = [("size", c.c_size_t), ("decision_count", c.c_size_t), ("action_count", c.c_size_t),
                ("instruction_count", c.c_size_t), ("trace_count", c.c_size_t), ("points", c.c_double)]


class _SpaceDecision(c.Structure):
    _fields_ = [("size", c.c_size_t), ("kind", c.c_int), ("instruction", c.c_uint32), ("numbers", c.c_size_t),
                ("values", c.c_size_t)]


DECISION_KINDS = ["tile", "category", "annotation", "locations"]
HARDWARE_FIELDS = ["cores", "simd_bits", "l1d_bytes", "l2_bytes", "l3_bytes", "clock_hz", "sm_count",
                   "shared_memory_bytes", "memory_bandwidth"]


class _Hardware(c.Structure):
    _fields_ = [("size", c.c_size_t)] + [(name, c.c_double) for name in HARDWARE_FIELDS]


def _bytes(text):
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)


def _pointer(array, kind):
    return array.ctypes.data_as(c.POINTER(kind))


def _check_length(values, count, what):
    """The library is told where an array begins, not where it ends."""
    if np.size(values) != count:
        raise ValueError(f"{what}: {count} numbers, not an array of shape {np.shape(values)}")


class Handle:
    """An open object of the library; close() or the end of a with block releases it. It cannot be used after that, nor
    after what it was made of is closed."""

    def __init__(self, library, close, pointer, keep=()):
        self.library, self._close, self._pointer, self._keep = library, close, pointer, keep

    @property
    def pointer(self):
        """The C object; an Error when it, or what it was made of, is closed."""
        if not self._pointer:
            raise Error("error_argument", f"this {type(self).__name__} is used after it was closed")
        for other in self._keep:
            if isinstance(other, Handle):
                other.pointer
        return self._pointer

    def close(self):
        if self._pointer:
            self._close(self._pointer)
            self._pointer = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Library:
    """One loaded libforeloop."""

    def __init__(self, path):
        self.dll = c.CDLL(str(path))
        for name, result in {
                "foreloop_version": c.c_char_p, "foreloop_status_name": c.c_char_p,
                "foreloop_tokenizer_vocabulary_size": c.c_size_t, "foreloop_tokenizer_token": c.c_char_p,
                "foreloop_encoding_count": c.c_size_t, "foreloop_encoding_window_count": c.c_size_t, "foreloop_encoding_ids": c.POINTER(c.c_uint32),
                "foreloop_encoding_offsets": c.POINTER(c.c_size_t), "foreloop_transformer_embedding_size": c.c_size_t,
                "foreloop_transformer_hidden_size": c.c_size_t, "foreloop_transformer_tokenizer": c.c_void_p,
                "foreloop_thread_pool_parallel": c.c_void_p, "foreloop_tier_detect": c.c_int,
                "foreloop_tier_name": c.c_char_p,
                "foreloop_gbdt_feature_name": c.c_char_p, "foreloop_gbdt_feature_type": c.c_char_p,
                "foreloop_model_kind_name": c.c_char_p,
                "foreloop_model_feature_name": c.c_char_p, "foreloop_model_transformer": c.c_void_p,
                "foreloop_model_gbdt": c.c_void_p, "foreloop_workload_latent": c.POINTER(c.c_float),
                "foreloop_workload_saved_size": c.c_size_t, "foreloop_state_size": c.c_size_t}.items():
            if hasattr(self.dll, name):
                getattr(self.dll, name).restype = result

    def call(self, name, *arguments):
        """Calls a function that returns a status, adds the error argument, raises Error on failure."""
        error = _Error()
        status = getattr(self.dll, name)(*arguments, c.byref(error))
        if status not in (OK, END):
            raise Error(self.dll.foreloop_status_name(status).decode(), error.message.decode("utf-8", "replace"),
                        (error.position_kind, error.position))
        return status

    def _open(self, kind, name, *arguments, keep=(), close=None):
        pointer = c.c_void_p()
        self.call(name, c.byref(pointer), *arguments)
        return kind(self, getattr(self.dll, close), pointer, keep)

    # -- text and tokenizer

    def canonical_text(self, text):
        data, needed = _bytes(text), c.c_size_t()
        self.call("foreloop_canonical_text", data, c.c_size_t(len(data)), None, c.c_size_t(0), c.byref(needed))
        buffer = c.create_string_buffer(needed.value + 1)
        self.call("foreloop_canonical_text", data, c.c_size_t(len(data)), buffer, c.c_size_t(needed.value + 1),
                  c.byref(needed))
        return buffer.raw[:needed.value].decode("utf-8", "replace")

    def tokenizer(self, path):
        return self._open(Tokenizer, "foreloop_tokenizer_open", os.fsencode(path), None,
                          close="foreloop_tokenizer_close")

    @staticmethod
    def _vocabulary_options(accents="by_case", tier="best", **options):
        return c.byref(_VocabularyOptions(size=c.sizeof(_VocabularyOptions), accents=ACCENTS[accents],
                                          tier=TIERS.get(tier, tier), **options))

    def tokenizer_bpe(self, vocabulary, merges, **options):
        """Of vocab.json and merges.txt. Option: add_prefix_space."""
        return self._open(Tokenizer, "foreloop_tokenizer_open_bpe", os.fsencode(vocabulary), os.fsencode(merges),
                          self._vocabulary_options(**options), close="foreloop_tokenizer_close")

    def tokenizer_wordpiece(self, vocabulary, **options):
        """Of vocab.txt. Options: keep_case, accents by name, join_chinese."""
        return self._open(Tokenizer, "foreloop_tokenizer_open_wordpiece", os.fsencode(vocabulary),
                          self._vocabulary_options(**options), close="foreloop_tokenizer_close")

    # -- parts

    def cpu_features(self, **options):
        """Names of the features that this machine has or, with options, of those that are used."""
        bits = (self.dll.foreloop_cpu_features_chosen(_options(**options)) if options
                else self.dll.foreloop_cpu_features_detect())
        return [name for name, bit in CPU_FEATURES.items() if bits & bit]

    def transformer(self, directory, **options):
        """Options: tier, precision, cpu_features_off, use_amx, by names."""
        return self._open(Transformer, "foreloop_transformer_open", os.fsencode(directory), _options(**options),
                          close="foreloop_transformer_close")

    def thread_pool(self, threads):
        pool = self._open(Handle, "foreloop_thread_pool_create", c.c_size_t(threads), None,
                          close="foreloop_thread_pool_close")
        pool.threads = threads
        return pool

    def gbdt(self, source, base_score=None, tree_weights=None, num_class=0, num_parallel_tree=0, objective=None,
             feature_names=None, iteration_range=(0, 0), tier=0):
        """`source`: a path, or the model's content as bytes. `tier`: the highest to use, a number as in
        foreloop_tier."""
        options = _GbdtOptions(c.sizeof(_GbdtOptions), None, base_score is not None, 0.0 if base_score is None else base_score, None, 0,
                               num_class, num_parallel_tree, None if objective is None else objective.encode())
        options.iteration_begin, options.iteration_end = iteration_range
        options.tier = tier
        if feature_names is not None:
            names = (c.c_char_p * len(feature_names))(*[name.encode() for name in feature_names])
            options.feature_names, options.feature_name_count = names, len(names)
        if tree_weights is not None:
            weights = np.ascontiguousarray(tree_weights, np.float32)
            options.tree_weights, options.tree_weight_count = _pointer(weights, c.c_float), len(weights)
        if isinstance(source, (bytes, bytearray)):
            source = bytes(source)
            return self._open(Gbdt, "foreloop_gbdt_open_memory", source, c.c_size_t(len(source)), c.byref(options),
                              close="foreloop_gbdt_close")
        return self._open(Gbdt, "foreloop_gbdt_open", os.fsencode(source), c.byref(options),
                          close="foreloop_gbdt_close")

    # -- training a ranker

    @staticmethod
    def _ranker_data(rows, groups, seconds, relevances):
        """The struct, and what it points into. `groups`: the rows of each group."""
        rows, given = Gbdt._rows(rows, None)
        for values in (seconds, relevances):
            if values is not None:
                _check_length(values, len(rows), "a time or relevance for each row")
        offsets = np.zeros(len(groups) + 1, np.uintp)
        offsets[1:] = np.cumsum(groups)
        keep = [rows, given, offsets]
        data = _RankerData(c.sizeof(_RankerData), c.pointer(given), _pointer(offsets, c.c_size_t), len(groups))
        if seconds is not None:
            keep.append(np.ascontiguousarray(seconds, np.float64))
            data.seconds = _pointer(keep[-1], c.c_double)
        if relevances is not None:
            keep.append(np.ascontiguousarray(relevances, np.float32))
            data.relevances = _pointer(keep[-1], c.c_float)
        return data, keep

    def _ranker_options(self, values):
        options, keep = _RankerOptions(), []
        self.dll.foreloop_ranker_options_init(c.byref(options), c.c_size_t(c.sizeof(options)))
        for name, value in values.items():
            if name == "feature_names":
                options.feature_names = (c.c_char_p * len(value))(*[n.encode() for n in value])
                options.feature_name_count = len(value)
            elif name == "start":
                options.start = value.pointer
            elif name == "progress":
                keep.append(_Progress(lambda _, done, rounds: int(bool(value(done, rounds)))))
                options.progress = keep[-1]
            else:
                value = {"objective": RANKER_OBJECTIVES, "pairs": RANKER_PAIRS}.get(name, {}).get(value, value)
                setattr(options, "lambda_" if name == "lambda" else name, value)
        return options, keep

    def train_ranker(self, rows, groups, seconds=None, relevances=None, **options):
        """A Gbdt from rows [n][features], the rows of each group, and times or relevances. Options as in
        foreloop_ranker_options; lambda as lambda_, objective and pairs by name."""
        data, keep = self._ranker_data(rows, groups, seconds, relevances)
        given, more = self._ranker_options(options)
        return self._open(Gbdt, "foreloop_ranker_train", c.byref(data), c.byref(given), close="foreloop_gbdt_close")

    def ranker_ndcg(self, rows, groups, scores, seconds=None, relevances=None, k=0, **options):
        """Mean NDCG@k of scores over the groups."""
        data, keep = self._ranker_data(rows, groups, seconds, relevances)
        given, more = self._ranker_options(options)
        scores, result = np.ascontiguousarray(scores, np.float32), c.c_double()
        _check_length(scores, data.rows.contents.row_count, "a score for each row")
        self.call("foreloop_ranker_ndcg", c.byref(data), c.byref(given), _pointer(scores, c.c_float), c.c_size_t(k),
                  c.byref(result))
        return result.value

    def records(self, path, full_trace=False):
        """Yields a dict for each record, and an Error object for each line that cannot be used."""
        options = _RecordsOptions(c.sizeof(_RecordsOptions), None, int(full_trace))
        handle = self._open(Handle, "foreloop_records_open", os.fsencode(path), c.byref(options),
                            close="foreloop_records_close")
        with handle:
            record = _Record()
            while True:
                record.size = c.sizeof(_Record)
                try:
                    if self.call("foreloop_records_next", handle.pointer, c.byref(record)) == END:
                        return
                except Error as error:
                    if error.code not in ("error_format", "error_limit"):
                        raise
                    yield error
                    continue
                actions = []
                for i in range(record.action_count):
                    action = record.actions[i]
                    arguments = {}
                    for j in range(action.argument_count):
                        argument = action.arguments[j]
                        arguments[argument.name.decode()] = (
                            argument.number if argument.text is None else argument.text.decode("utf-8", "replace"))
                    actions.append((action.kind.decode(), arguments))
                yield {"line": record.line, "workload": record.workload, "target": record.target.decode(),
                       "actions": actions, "instructions": [record.instructions[i] for i in range(len(actions))],
                       "seconds": [record.seconds[i] for i in range(record.seconds_count)],
                       "unknown_instructions": record.unknown_instructions}

    def space(self, trace, actions=None):
        """A search space of the sketch of `trace`: a line of a database, or [[instructions], [decisions]] as JSON.
        Scoring needs `actions`, a table of Model.actions."""
        data = _bytes(trace)
        return self._open(Space, "foreloop_space_create", None if actions is None else actions.pointer, data,
                          c.c_size_t(len(data)), None, keep=(actions,), close="foreloop_space_close")

    # -- the model

    def model(self, source, **options):
        """`source`: a directory, a packed file, or the packed content as bytes. Options as for transformer()."""
        if isinstance(source, (bytes, bytearray)):
            data = c.create_string_buffer(bytes(source), len(source))
            return self._open(Model, "foreloop_model_open_memory", data, c.c_size_t(len(source)),
                              _options(**options), keep=(data,),
                              close="foreloop_model_close")
        return self._open(Model, "foreloop_model_open", os.fsencode(source), _options(**options),
                          close="foreloop_model_close")

    def pack(self, directory, path):
        self.call("foreloop_model_pack", os.fsencode(directory), os.fsencode(path), None)


class Tokenizer(Handle):
    def encoding(self):
        if not hasattr(self, "_encoding"):
            self._encoding = self.library._open(Handle, "foreloop_encoding_create", self.pointer, keep=(self,),
                                                close="foreloop_encoding_close")
        return self._encoding.pointer

    def tokenize(self, text, add_special=True):
        """(ids, byte offsets [n][2]) as lists."""
        encoding, data = self.encoding(), _bytes(text)
        self.library.call("foreloop_tokenize", encoding, data, c.c_size_t(len(data)), int(add_special))
        return self.windows()[0][:2]

    def tokenize_with(self, text, **options):
        """[(ids, byte offsets, begin, end of what is no padding)] of each window; options as in the C struct."""
        data = _bytes(text)
        given = _TokenizeOptions(size=c.sizeof(_TokenizeOptions), **options)
        self.library.call("foreloop_tokenize_with", self.encoding(), data, c.c_size_t(len(data)), c.byref(given))
        return self.windows()

    def windows(self):
        """Of the last text."""
        dll, encoding, result = self.library.dll, self.encoding(), []
        for i in range(dll.foreloop_encoding_window_count(encoding)):
            window = _Window(size=c.sizeof(_Window))
            dll.foreloop_encoding_window(encoding, c.c_size_t(i), c.byref(window))
            count = window.count
            ids = window.ids[:count] if count else []
            offsets = window.offsets[:2 * count] if count else []
            result.append((ids, list(zip(offsets[::2], offsets[1::2])), window.content_begin, window.content_end))
        return result

    def decode(self, ids, skip_special=True):
        """Text as bytes."""
        ids, length = np.ascontiguousarray(ids, np.uint32), c.c_size_t()
        arguments = self.pointer, _pointer(ids, c.c_uint32), c.c_size_t(len(ids)), int(skip_special)
        self.library.call("foreloop_tokenizer_decode", *arguments, None, c.c_size_t(0), c.byref(length))
        text = c.create_string_buffer(length.value + 1)
        self.library.call("foreloop_tokenizer_decode", *arguments, text, length, c.byref(length))
        return text.raw[:length.value]

    def token(self, token_id):
        token = self.library.dll.foreloop_tokenizer_token(self.pointer, c.c_uint32(token_id))
        return None if token is None else token.decode("utf-8", "replace")

    def close(self):
        if hasattr(self, "_encoding"):
            self._encoding.close()
        super().close()


class Transformer(Handle):
    def encoder(self):
        if not hasattr(self, "_encoder"):
            self._encoder = self.library._open(Handle, "foreloop_encoder_create", self.pointer, keep=(self,),
                                               close="foreloop_encoder_close")
        return self._encoder

    def tokenizer(self):
        """The transformer's own tokenizer, borrowed: close it (its scratch) before the transformer."""
        pointer = c.c_void_p(self.library.dll.foreloop_transformer_tokenizer(self.pointer))
        return Tokenizer(self.library, lambda _: None, pointer, (self,))

    def encode(self, text):
        size = self.library.dll.foreloop_transformer_embedding_size(self.pointer)
        result, data = np.empty(size, np.float32), _bytes(text)
        self.library.call("foreloop_encode_text", self.encoder().pointer, data, c.c_size_t(len(data)),
                          _pointer(result, c.c_float))
        return result

    def encode_batch(self, texts):
        """[texts][embedding size], each as `encode` gives it."""
        size = self.library.dll.foreloop_transformer_embedding_size(self.pointer)
        data = [_bytes(text) for text in texts]
        result = np.empty((len(data), size), np.float32)
        self.library.call("foreloop_encode_texts", self.encoder().pointer, (c.c_char_p * len(data))(*data),
                          (c.c_size_t * len(data))(*map(len, data)), c.c_size_t(len(data)),
                          _pointer(result, c.c_float))
        return result

    def use_threads(self, pool):
        """Spreads the encoder's work over a pool of Library.thread_pool; None: no longer. Close the transformer before
        the pool."""
        parallel = None if pool is None else c.c_void_p(self.library.dll.foreloop_thread_pool_parallel(pool.pointer))
        self.library.call("foreloop_encoder_set_parallel", self.encoder().pointer, parallel,
                          c.c_size_t(pool.threads if pool else 0))

    def hidden(self, ids, types=None):
        size = self.library.dll.foreloop_transformer_hidden_size(self.pointer)
        ids = np.ascontiguousarray(ids, np.uint32)
        if types is not None:
            types = np.ascontiguousarray(types, np.uint32)
        result = np.empty((len(ids), size), np.float32)
        self.library.call("foreloop_encode_ids", self.encoder().pointer, _pointer(ids, c.c_uint32),
                          None if types is None else _pointer(types, c.c_uint32), c.c_size_t(len(ids)),
                          _pointer(result, c.c_float))
        return result

    def close(self):
        if hasattr(self, "_encoder"):
            self._encoder.close()
        super().close()


class Gbdt(Handle):
    @property
    def info(self):
        info = _GbdtInfo(c.sizeof(_GbdtInfo))
        self.library.dll.foreloop_gbdt_get_info(self.pointer, c.byref(info))
        return {name: getattr(info, name).decode() if isinstance(getattr(info, name), bytes) else getattr(info, name)
                for name, _ in _GbdtInfo._fields_[1:]}

    def predict(self, rows, margin=False):
        rows = np.ascontiguousarray(rows, np.float32)
        info = self.info
        result = np.empty((rows.shape[0], info["output_count" if margin else "prediction_count"]), np.float32)
        self.library.call("foreloop_gbdt_predict", self.pointer, _pointer(rows, c.c_float), c.c_size_t(rows.shape[0]),
                          c.c_size_t(rows.shape[1]), int(margin), _pointer(result, c.c_float))
        return result

    @staticmethod
    def _rows(rows, missing):
        """The array as it lies, whatever its strides, and the struct that describes it."""
        rows = np.asarray(rows, np.float32)
        if rows.ndim != 2:
            raise ValueError(f"rows are an array [rows][features], not one of shape {rows.shape}")
        if any(stride <= 0 or stride % 4 for stride in rows.strides):
            rows = np.ascontiguousarray(rows)
        return rows, _GbdtRows(c.sizeof(_GbdtRows), _pointer(rows, c.c_float), *rows.shape, rows.strides[0] // 4,
                               rows.strides[1] // 4, missing is not None, 0.0 if missing is None else missing)

    def predict_rows(self, rows, output="prediction", missing=None):
        """`output`: a key of GBDT_OUTPUTS. Rows in any layout, with columns to spare or to want."""
        info, (rows, given) = self.info, self._rows(rows, missing)
        width = info[{"prediction": "prediction_count", "leaf_index": "tree_count"}.get(output, "output_count")]
        result = np.empty((rows.shape[0], width), np.float32)
        self.library.call("foreloop_gbdt_predict_rows", self.pointer, c.byref(given), GBDT_OUTPUTS[output],
                          _pointer(result, c.c_float))
        return result

    def save(self, path):
        self.library.call("foreloop_gbdt_save", self.pointer, os.fsencode(path))

    def to_json(self):
        """The model as save_model JSON."""
        needed = c.c_size_t()
        self.library.call("foreloop_gbdt_save_memory", self.pointer, None, c.c_size_t(0), c.byref(needed))
        buffer = c.create_string_buffer(needed.value)
        self.library.call("foreloop_gbdt_save_memory", self.pointer, buffer, needed, c.byref(needed))
        return buffer.raw[:needed.value]

    def importance(self, kind):
        """Scores by feature; `kind` is one of IMPORTANCE_KINDS."""
        result = np.empty(self.info["feature_count"], np.float64)
        self.library.call("foreloop_gbdt_importance", self.pointer, IMPORTANCE_KINDS.index(kind),
                          _pointer(result, c.c_double))
        return result

    def explain(self, rows, missing=None):
        """TreeSHAP contributions [rows][outputs][features + 1], the bias last."""
        info, (rows, given) = self.info, self._rows(rows, missing)
        result = np.empty((rows.shape[0], info["output_count"], info["feature_count"] + 1), np.float32)
        with self.library._open(Handle, "foreloop_gbdt_explainer_create", self.pointer, keep=(self,),
                                close="foreloop_gbdt_explainer_close") as explainer:
            self.library.call("foreloop_gbdt_explain", explainer.pointer, c.byref(given), _pointer(result, c.c_float))
        return result


class Model(Handle):
    @property
    def info(self):
        info = _ModelInfo(c.sizeof(_ModelInfo))
        self.library.dll.foreloop_model_get_info(self.pointer, c.byref(info))
        result = {name: getattr(info, name) for name, _ in _ModelInfo._fields_[1:] if not name.startswith("manifest")}
        result["manifest"] = json.loads(info.manifest)
        return result

    def feature_names(self):
        get = self.library.dll.foreloop_model_feature_name
        return [get(self.pointer, c.c_size_t(i)).decode() for i in range(self.info["feature_count"])]

    def workload(self, text=None, latent=None):
        """Encodes a program, or wraps a latent state."""
        if latent is not None:
            latent = np.ascontiguousarray(latent, np.float32)
            return self.library._open(Workload, "foreloop_workload_create", self.pointer, _pointer(latent, c.c_float),
                                      keep=(self,), close="foreloop_workload_close")
        if not hasattr(self, "_encoder"):
            transformer = c.c_void_p(self.library.dll.foreloop_model_transformer(self.pointer))
            self._encoder = self.library._open(Handle, "foreloop_encoder_create", transformer, keep=(self,),
                                               close="foreloop_encoder_close")
        data = _bytes(text)
        return self.library._open(Workload, "foreloop_workload_encode", self.pointer, self._encoder.pointer, data,
                                  c.c_size_t(len(data)), keep=(self,), close="foreloop_workload_close")

    def gbdt(self):
        """The model's own trees, borrowed."""
        pointer = c.c_void_p(self.library.dll.foreloop_model_gbdt(self.pointer))
        return Gbdt(self.library, lambda _: None, pointer, (self,))

    def actions(self, capacity=0):
        return self.library._open(Actions, "foreloop_actions_create", self.pointer, c.c_size_t(capacity), keep=(self,),
                                  close="foreloop_actions_close")

    def scorer(self, actions, hardware=None):
        """`hardware`: dict of foreloop_hardware fields, or None for this machine's."""
        given = None
        if hardware is not None:
            unknown = set(hardware) - set(HARDWARE_FIELDS)
            if unknown:
                raise ValueError(f"hardware has no {', '.join(sorted(unknown))}; it has {', '.join(HARDWARE_FIELDS)}")
            given = _Hardware(c.sizeof(_Hardware), *[float(hardware.get(name, 0)) for name in HARDWARE_FIELDS])
        scorer = self.library._open(Scorer, "foreloop_scorer_create", self.pointer, actions.pointer,
                                    None if given is None else c.byref(given), keep=(self, actions),
                                    close="foreloop_scorer_close")
        scorer.model = self
        return scorer

    def close(self):
        if hasattr(self, "_encoder"):
            self._encoder.close()
        super().close()


class Workload(Handle):
    def latent(self, size):
        return np.ctypeslib.as_array(self.library.dll.foreloop_workload_latent(self.pointer), (size,)).copy()


class Actions(Handle):
    def intern(self, actions):
        """Actions as (kind, {argument: number or text}); ids as an array."""
        keep, table = [], (_Action * max(1, len(actions)))()
        for i, (kind, arguments) in enumerate(actions):
            array = (_Argument * max(1, len(arguments)))()
            for j, (name, value) in enumerate(arguments.items()):
                is_text = isinstance(value, str)
                array[j] = _Argument(name.encode(), value.encode() if is_text else None, 0 if is_text else value)
            keep.append(array)
            table[i] = _Action(kind.encode(), array, len(arguments))
        ids = np.empty(len(actions), np.uint32)
        self.library.call("foreloop_actions_intern", self.pointer, table, c.c_size_t(len(actions)),
                          _pointer(ids, c.c_uint32))
        return ids

    def intern_records(self, text):
        """The ids of each record's actions, of a tuning log's text; an Error for a line that cannot be used."""
        data, record, result = _bytes(text), _Record(), []
        with self.library._open(Handle, "foreloop_records_open_memory", data, c.c_size_t(len(data)), None,
                                close="foreloop_records_close") as records:
            while True:
                record.size = c.sizeof(_Record)
                if self.library.call("foreloop_records_next", records.pointer, c.byref(record)) == END:
                    return result
                result.append(np.empty(record.action_count, np.uint32))
                self.library.call("foreloop_actions_intern", self.pointer, record.actions,
                                  c.c_size_t(record.action_count), _pointer(result[-1], c.c_uint32))


class Scorer(Handle):
    _ranker = None

    @property
    def pointer(self):
        if self._ranker is not None:
            self._ranker.pointer
        return super().pointer

    def _csr(self, sequences):
        offsets = np.zeros(len(sequences) + 1, np.uintp)
        offsets[1:] = np.cumsum([len(s) for s in sequences])
        ids = np.concatenate([np.asarray(s, np.uint32) for s in sequences] or [np.empty(0, np.uint32)])
        return np.ascontiguousarray(ids, np.uint32), offsets

    def score(self, workload, sequences):
        ids, offsets = self._csr(sequences)
        scores = np.empty(len(sequences), np.float32)
        self.library.call("foreloop_score", self.pointer, workload.pointer, _pointer(ids, c.c_uint32),
                          _pointer(offsets, c.c_size_t), c.c_size_t(len(sequences)), _pointer(scores, c.c_float))
        return scores

    def _vector(self, function, workload, sequence, size):
        ids, result = np.ascontiguousarray(sequence, np.uint32), np.empty(size, np.float32)
        self.library.call(function, self.pointer, workload.pointer, _pointer(ids, c.c_uint32), c.c_size_t(len(ids)),
                          _pointer(result, c.c_float))
        return result

    def features(self, workload, sequence):
        return self._vector("foreloop_features", workload, sequence, self.model.info["feature_count"])

    def features_batch(self, workload, sequences):
        """Features [sequences][feature_count]."""
        ids, offsets = self._csr(sequences)
        count = self.model.info["feature_count"]
        result = np.empty((len(sequences), count), np.float32)
        self.library.call("foreloop_features_batch", self.pointer, workload.pointer, _pointer(ids, c.c_uint32),
                          _pointer(offsets, c.c_size_t), c.c_size_t(len(sequences)), _pointer(result, c.c_float),
                          c.c_size_t(count))
        return result

    def set_ranker(self, ranker):
        """A Gbdt, which must stay open, or None for the model's own."""
        given, before, self._ranker = None if ranker is None else ranker.pointer, self._ranker, None
        try:
            self.library.call("foreloop_scorer_set_ranker", self.pointer, given)
        except Error:
            self._ranker = before
            raise
        self._ranker = ranker

    def rollout(self, workload, sequence):
        return self._vector("foreloop_rollout", workload, sequence, self.model.info["latent_size"])


class Space(Handle):
    """Points are arrays [n][decisions] of uint32; random numbers come from `seed` and go on from call to call."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        info = self.info
        self.decision_count, self.action_count = info["decision_count"], info["action_count"]
        self._random = c.c_uint64(0)

    @property
    def info(self):
        info = _SpaceInfo(c.sizeof(_SpaceInfo))
        self.library.dll.foreloop_space_get_info(self.pointer, c.byref(info))
        return {name: getattr(info, name) for name, _ in _SpaceInfo._fields_[1:]}

    def seed(self, seed):
        self._random = c.c_uint64(seed)

    def _points(self, points):
        points = np.ascontiguousarray(points, np.uint32)
        points = points[None] if points.ndim == 1 else points
        if points.ndim != 2 or points.shape[1] != self.decision_count:
            raise ValueError(f"points of this space are arrays [points][{self.decision_count}], not of shape {points.shape}")
        return points, _pointer(points, c.c_uint32)

    def _one(self, point):
        _check_length(point, self.decision_count, "a point of this space")
        return self._points(point)

    def _empty(self, count):
        points = np.empty((count, self.decision_count), np.uint32)
        return points, _pointer(points, c.c_uint32)

    def add(self, trace):
        """Adds what a trace of the same sketch shows; returns its point. Error error_mismatch for another sketch."""
        data, (point, to) = _bytes(trace), self._empty(1)
        self.library.call("foreloop_space_add", self.pointer, data, c.c_size_t(len(data)), to)
        return point[0]

    def decisions(self):
        """For each decision: kind, instruction, numbers, values."""
        result = []
        for i in range(self.decision_count):
            decision = _SpaceDecision(c.sizeof(_SpaceDecision))
            self.library.call("foreloop_space_get_decision", self.pointer, c.c_size_t(i), c.byref(decision))
            result.append({"kind": DECISION_KINDS[decision.kind], "instruction": decision.instruction,
                           "numbers": decision.numbers, "values": decision.values})
        return result

    def value(self, decision, value, numbers=None):
        """The numbers of a value; `numbers`: how many the decision has, when that is known."""
        own = _SpaceDecision(c.sizeof(_SpaceDecision))
        self.library.call("foreloop_space_get_decision", self.pointer, c.c_size_t(decision), c.byref(own))
        if numbers not in (None, own.numbers):
            raise ValueError(f"values of decision {decision} have {own.numbers} numbers, not {numbers}")
        result = np.empty(own.numbers, np.float64)
        self.library.call("foreloop_space_get_value", self.pointer, c.c_size_t(decision), c.c_uint32(value),
                          _pointer(result, c.c_double))
        return result

    def trace_points(self):
        """The points of the traces that were added."""
        points, _ = self._empty(self.info["trace_count"])
        for i in range(len(points)):
            self.library.call("foreloop_space_get_trace_point", self.pointer, c.c_size_t(i),
                              _pointer(points[i], c.c_uint32))
        return points

    def is_legal(self, point):
        return bool(self.library.dll.foreloop_space_is_legal(self.pointer, self._one(point)[1]))

    def sample(self, count):
        points, to = self._empty(count)
        self.library.call("foreloop_space_sample", self.pointer, c.byref(self._random), c.c_size_t(count), to)
        return points

    def mutate(self, points):
        (points, given), (result, to) = self._points(points), self._empty(len(points))
        self.library.call("foreloop_space_mutate", self.pointer, c.byref(self._random), given, c.c_size_t(len(points)),
                          to)
        return result

    def cross(self, first, second):
        (first, a), (second, b), (result, to) = self._points(first), self._points(second), self._empty(len(first))
        if len(first) != len(second):
            raise ValueError("cross: as many first points as second ones")
        self.library.call("foreloop_space_cross", self.pointer, c.byref(self._random), a, b, c.c_size_t(len(first)), to)
        return result

    def enumerate(self):
        """Yields all legal points."""
        point, to = self._empty(1)
        status = self.library.call("foreloop_space_first", self.pointer, to)
        while status != END:
            yield point[0].copy()
            status = self.library.call("foreloop_space_next", self.pointer, to)

    def trace(self, point):
        """The point's trace as JSON text."""
        (point, given), needed = self._one(point), c.c_size_t()
        self.library.call("foreloop_space_trace", self.pointer, given, None, c.c_size_t(0), c.byref(needed))
        buffer = c.create_string_buffer(needed.value)
        self.library.call("foreloop_space_trace", self.pointer, given, buffer, needed, c.byref(needed))
        return buffer.raw[:needed.value].decode("utf-8")

    def intern(self, points):
        """Ids of the actions, [points][actions]."""
        points, given = self._points(points)
        ids = np.empty((len(points), self.action_count), np.uint32)
        self.library.call("foreloop_space_intern", self.pointer, given, c.c_size_t(len(points)),
                          _pointer(ids, c.c_uint32))
        return ids

    def score(self, scorer, workload, points):
        points, given = self._points(points)
        scores = np.empty(len(points), np.float32)
        self.library.call("foreloop_space_score", self.pointer, scorer.pointer, workload.pointer, given,
                          c.c_size_t(len(points)), _pointer(scores, c.c_float))
        return scores


def load(path=None):
    """Loads the library from `path`, FORELOOP_LIBRARY, or build/src of this checkout."""
    root = pathlib.Path(__file__).resolve().parents[2]
    return Library(path or os.environ.get("FORELOOP_LIBRARY") or root / "build" / "src" / "libforeloop.so")
