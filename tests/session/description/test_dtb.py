"""Reading compiled device trees: what dtc's own tools read in them, and no surprise in damaged ones."""

import random
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rvtrace_gdb.session.description import dtb
from rvtrace_gdb.session.description.devicetree import trace_components
from rvtrace_gdb.session.description.dtb import DeviceTreeError, Node
from rvtrace_gdb.session.description.model import DescriptionError
from tests.helpers.amounts import long_only, some_of
from tests.session.description.devicetrees import NAMES, blob, compiled


def fdtget(file: Path, *arguments: str) -> str:
    return subprocess.run(["fdtget", *arguments], capture_output=True, text=True, check=True).stdout


def listed(file: Path, path: str = "/") -> Iterator[tuple[str, dict[str, bytes]]]:
    """Every node below *path* with its properties, as fdtget of dtc reads them."""
    properties = {}
    for name in fdtget(file, "-p", str(file), path).split():
        said = fdtget(file, "-t", "bx", str(file), path, name).split()
        properties[name] = bytes(int(byte, 16) for byte in said)
    yield path, properties
    for child in fdtget(file, "-l", str(file), path).split():
        yield from listed(file, f"{path.rstrip('/')}/{child}")


@pytest.mark.parametrize("name", [*NAMES[:2], *long_only(*NAMES[2:])])
def test_nodes_and_properties_are_those_that_fdtget_reads(name: str, tmp_path: Path) -> None:
    file = tmp_path / "x.dtb"
    file.write_bytes(blob(name))
    found = [(node.path, node.properties) for node in dtb.read(blob(name), "x.dtb").walk()]
    assert found == list(listed(file))


def test_the_device_tree_of_qemu_is_read(tmp_path: Path) -> None:
    """Not made by dtc, and much longer than what is in it."""
    file = tmp_path / "virt.dtb"
    command = ["qemu-system-riscv64", "-M", f"virt,dumpdtb={file}", "-smp", "2"]
    subprocess.run(command, capture_output=True, check=True)
    root = dtb.read(file.read_bytes(), "virt.dtb")
    assert dict(listed(file, "/cpus")) == {n.path: n.properties for n in root.walk() if n.path.startswith("/cpus")}
    soc = root.child("soc")
    assert soc is not None
    addresses = {node.name: node.address for node in soc.children if "reg" in node.properties}
    assert all(int(name.partition("@")[2], 16) == address for name, address in addresses.items())
    with pytest.raises(DeviceTreeError) as caught:
        trace_components(root, {})
    assert str(caught.value) == (
        "virt.dtb: it has no trace components: no node is compatible with one of riscv,trace-component,"
            " riscv,trace-encoder, riscv,trace-funnel, riscv,trace-atbbridge,"
        " sifive,trace-encoder0, sifive,trace-funnel0, xuantie_ntrace,encoder-controller,"
        " xuantie_ntrace,funnel-controller, xuantie_ntrace,sink-controller"
    )


def nodes(body: str) -> dict[str, Node]:
    """The nodes of a tree by their names."""
    return {node.name: node for node in dtb.read(compiled(f"/dts-v1/;\n/ {{ {body} }};"), "x.dtb").walk()}


RANGES = """
    #address-cells = <2>; #size-cells = <2>;
    same { ranges; #address-cells = <2>; #size-cells = <1>; a { reg = <1 0x1000 4>; }; };
    moved {
        #address-cells = <1>; #size-cells = <1>;
        ranges = <0x0 0x4 0x0 0x100>, <0x1000 0x5 0x2000 0x1000>;
        b { reg = <0x1010 4>; };
        c { reg = <0x1100 4>; ranges = <0 0x1100 0x10>; #address-cells = <1>; #size-cells = <1>; d { reg = <8 4>; }; };
        outside { reg = <0x2000 4>; };
    };
    silent { #address-cells = <1>; #size-cells = <1>; e { reg = <0x1000 4>; }; f { }; };
    wide { #address-cells = <5>; #size-cells = <1>; g { reg = <1 2 3 4 5 6>; }; };
    h { reg = [00 01]; };
    short { reg = <1>; };
"""


@pytest.mark.parametrize(
    ("name", "address"), [("a", 0x1_0000_1000), ("b", 0x5_0000_2010), ("c", 0x5_0000_2100), ("d", 0x5_0000_2108)]
)
def test_addresses_are_those_that_the_root_sees(name: str, address: int) -> None:
    """Devicetree Specification 2.3.8."""
    assert nodes(RANGES)[name].address == address


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("outside", "x.dtb: /moved: ranges: none has its 0x2000 in it"),
        ("e", "x.dtb: /silent: ranges: missing, so the address of its 0x1000 on the parent bus is not known"),
        ("f", "x.dtb: /silent/f: reg: missing"),
        ("g", "x.dtb: /wide: #address-cells: is 5, must be 4 at most"),
        ("h", "x.dtb: /h: reg: has 2 bytes, which are not whole cells"),
        ("short", "x.dtb: /short: reg: has no address"),
    ],
)
def test_an_address_that_cannot_be_told_is_one_line(name: str, line: str) -> None:
    with pytest.raises(DeviceTreeError) as caught:
        _ = nodes(RANGES)[name].address
    assert str(caught.value) == line


def test_what_a_property_holds() -> None:
    found = nodes(
        'text = "one", "two"; none; empty = ""; cells = <1 2>; off { status = "disabled"; }; on { status = "ok"; };'
    )
    root = found[""]
    assert root.path == "/"
    assert [root.strings(key) for key in ("text", "none", "empty", "missing")] == [("one", "two"), (), ("",), ()]
    assert [root.cells(key) for key in ("cells", "none", "missing")] == [(1, 2), (), ()]
    assert [found[name].okay for name in ("", "on", "off")] == [True, True, False]


def test_the_old_name_of_a_phandle() -> None:
    assert nodes("linux,phandle = <7>;")[""].phandle == 7
    assert nodes("x = <7>;")[""].phandle is None


def another_version(data: bytes) -> bytes:
    """last_comp_version, the seventh cell of the header."""
    return data[:24] + bytes([0, 0, 0, 15]) + data[28:]


@pytest.mark.parametrize(
    ("spoil", "line"),
    [
        (lambda data: data[:30], "x.dtb: is a damaged device tree: it ends too early"),
        (lambda data: b"\x7fELF" + data[4:], "x.dtb: is not a compiled device tree: it does not begin with 0xd00dfeed"),
        (lambda data: data[:-1], "x.dtb: is a damaged device tree: "),
        (another_version, "x.dtb: is a device tree of a format that is not known, 15"),
    ],
    ids=["header", "another format", "cut", "another version"],
)
def test_what_is_no_device_tree_is_one_line(spoil: Callable[[bytes], bytes], line: str) -> None:
    with pytest.raises(DeviceTreeError) as caught:
        dtb.read(spoil(blob("per_hart")), "x.dtb")
    assert str(caught.value).startswith(line)


def harmless(data: bytes) -> None:
    """Whatever is in *data*, it is imported or refused with one line."""
    try:
        trace_components(dtb.read(data, "x.dtb"), {})
    except (DeviceTreeError, DescriptionError) as error:
        assert "\n" not in str(error)
        assert str(error).startswith("x.dtb: ")


@pytest.mark.parametrize("name", NAMES)
def test_damage_is_never_more_than_a_line(name: str) -> None:
    data, choose = blob(name), random.Random(name)
    for _ in range(some_of(400)):
        damaged = bytearray(data[: choose.choice((len(data), choose.randrange(len(data))))])
        for _ in range(choose.randint(0, 3)):
            if damaged:
                damaged[choose.randrange(len(damaged))] = choose.choice((0, 1, 2, 0x7F, 0xFF, choose.randrange(256)))
        harmless(bytes(damaged))


def test_tokens_in_the_wrong_place() -> None:
    """Trees of random tokens in an undamaged frame."""
    choose = random.Random(4)
    header = struct.unpack(">10I", blob("per_hart")[:40])
    for _ in range(some_of(2000)):
        tokens = [choose.choice((1, 1, 0, 2, 3, 4, 9, 0x61000000)) for _ in range(choose.randint(0, 20))]
        block = struct.pack(f">{len(tokens)}I", *tokens)
        frame = struct.pack(">10I", header[0], 56 + len(block), 56, 40, 40, 17, 16, 0, 16, len(block))
        harmless(frame + bytes(16) + block)


def test_deep_trees_are_no_problem() -> None:
    depth = 50_000
    block = struct.pack(">2I", 1, 0) * depth + struct.pack(">I", 2) * depth + struct.pack(">I", 9)
    frame = struct.pack(">4s9I", dtb.MAGIC, 56 + len(block), 56, 40, 40, 17, 16, 0, 16, len(block))
    deepest = list(dtb.read(frame + bytes(16) + block, "x.dtb").walk())[-1]
    assert deepest.path == "/" * (depth - 1)
