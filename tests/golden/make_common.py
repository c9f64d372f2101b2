"""Writes tests/golden/common: small .safetensors and .npy files by the reference packages.

Made with numpy 2.4.6 and safetensors 0.8.0. The tests know the values: element i of every floating array is i / 4 - 1
in row-major order.
"""
import pathlib

import numpy as np
import safetensors.numpy

here = pathlib.Path(__file__).parent / "common"
here.mkdir(exist_ok=True)


def values(shape, dtype):
    count = int(np.prod(shape))
    return (np.arange(count) / 4 - 1).reshape(shape).astype(dtype)


safetensors.numpy.save_file(
    {
        "layer.0.weight": values((2, 3), np.float32),
        "half": values((5,), np.float16),
        "double": values((2, 1, 2), np.float64),
        "scalar": values((), np.float32),
        "empty": values((0, 3), np.float32),
        "ids": np.array([1, -2, 3], np.int64),
        "bytes": np.frombuffer(b"abc", np.uint8),
        "words": np.array([1, 2], np.uint16),
        "na\u00efve \"quoted\"": values((1,), np.float32),
    },
    here / "reference.safetensors",
    metadata={"format": "np"},
)

np.save(here / "f4_vector.npy", values((5,), "<f4"))
np.save(here / "f4_matrix.npy", values((2, 3), "<f4"))
np.save(here / "f8_matrix.npy", values((2, 3), "<f8"))
np.save(here / "f4_fortran.npy", np.asfortranarray(values((2, 3), "<f4")))
np.save(here / "f8_fortran_big_endian.npy", np.asfortranarray(values((2, 3), ">f8")))
np.save(here / "f4_big_endian.npy", values((2, 3), ">f4"))
np.save(here / "f4_empty.npy", values((0, 3), "<f4"))
np.save(here / "i4_matrix.npy", np.zeros((2, 3), "<i4"))
np.save(here / "f4_cube.npy", values((2, 3, 1), "<f4"))
np.save(here / "f4_scalar.npy", values((), "<f4"))
np.save(here / "records.npy", np.zeros(2, [("a", "<f4"), ("b", "<f8")]))
for version in (2, 3):
    with open(here / f"f4_matrix_version{version}.npy", "wb") as file:
        np.lib.format.write_array(file, values((2, 3), "<f4"), version=(version, 0))
