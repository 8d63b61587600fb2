/* Registers, counters, meters, hashes and digests. */
#include <core.p4>
#include <v1model.p4>

const bit<32> SENTINELS = 1000;

header request_h {
    bit<8>  code;
    bit<32> index;
    bit<32> value;
}

struct headers_t {
    request_h request;
}

struct note_t {
    bit<32> index;
    bit<32> value;
}

struct metadata_t {
    bit<32> colour;
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control IngressPipe(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    register<bit<32>>(16)     cells;
    register<int<8>>(4)       small;
    counter(16, CounterType.packets_and_bytes) seen;
    meter(4, MeterType.packets) pace;
    direct_meter<bit<32>>(MeterType.packets) direct_pace;

    action read()   { cells.read(hdr.request.value, hdr.request.index); }
    action write()  { cells.write(hdr.request.index, hdr.request.value); }
    action count()  { seen.count(hdr.request.index); }
    action measure() { pace.execute_meter(hdr.request.index, hdr.request.value); }
    action tell()   { digest<note_t>(1, { hdr.request.index, hdr.request.value }); }
    action signed_cell() {
        int<8> stored;
        small.write(1, (int<8>)(bit<8>)hdr.request.value);
        small.read(stored, 1);
        hdr.request.value = (bit<32>)(int<32>)stored;
    }
    action hash_crc16() {
        hash(hdr.request.value, HashAlgorithm.crc16, 32w0,
             { hdr.request.index }, 32w0xFFFFFFFF);
    }
    action hash_crc32() {
        hash(hdr.request.value, HashAlgorithm.crc32, 32w0,
             { hdr.request.index }, 64w0x100000000);
    }
    action hash_csum16() {
        hash(hdr.request.value, HashAlgorithm.csum16, 32w0,
             { hdr.request.index }, 32w0xFFFFFFFF);
    }
    action hash_xor16() {
        hash(hdr.request.value, HashAlgorithm.xor16, 32w0,
             { hdr.request.index }, 32w0xFFFFFFFF);
    }
    action hash_identity() {
        hash(hdr.request.value, HashAlgorithm.identity, 32w100,
             { hdr.request.index }, 32w16);
    }
    action draw() { random(hdr.request.value, 32w10, 32w20); }

    table choose {
        key = { hdr.request.code: exact; }
        actions = {
            read; write; count; measure; tell; signed_cell; hash_crc16; hash_crc32; hash_csum16;
            hash_xor16; hash_identity; draw; NoAction;
        }
        const default_action = NoAction();
        const entries = {
            1: read(); 2: write(); 3: count(); 4: measure(); 5: tell(); 6: signed_cell();
            7: hash_crc16(); 8: hash_crc32(); 9: hash_csum16(); 10: hash_xor16();
            11: hash_identity(); 12: draw();
        }
    }

    action colour_it() { direct_pace.read(meta.colour); }

    table paced {
        key = { hdr.request.index: exact; }
        actions = { colour_it; NoAction; }
        default_action = NoAction();
        meters = direct_pace;
    }

    apply {
        standard_metadata.egress_spec = 1;
        if (hdr.request.code == 13) {
            paced.apply();
            hdr.request.value = meta.colour;
        } else {
            choose.apply();
        }
        // a sentinel of the packet tests: its length tells the port that it leaves by
        if (standard_metadata.packet_length > SENTINELS) {
            standard_metadata.egress_spec = (bit<9>)(standard_metadata.packet_length - SENTINELS);
        }
    }
}

control EgressPipe(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    apply { }
}

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr.request); }
}

V1Switch(Parse(), Verify(), IngressPipe(), EgressPipe(), Update(), Deparse()) main;
