/* One operation a packet, chosen by the first byte, on operands of 32, 13 and 1024 bits. */
#include <core.p4>
#include <v1model.p4>

const bit<32> SENTINELS = 1000;

header operation_h {
    bit<8> code;
}

header words_h {
    bit<32> a;
    bit<32> b;
    bit<32> result;
}

header signed_h {
    int<32> a;
    int<32> b;
    int<32> result;
    bit<3>  spare;
    int<13> odd;
}

header wide_h {
    bit<1024> a;
    bit<1024> b;
}

struct headers_t {
    operation_h operation;
    words_h     words;
    signed_h    numbers;
    wide_h      wide;
}

struct metadata_t {
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.operation);
        transition select(hdr.operation.code) {
            0x00 &&& 0xC0: words;
            0x40 &&& 0xC0: numbers;
            0x80 &&& 0xC0: wide;
            default: accept;
        }
    }
    state words {
        packet.extract(hdr.words);
        transition accept;
    }
    state numbers {
        packet.extract(hdr.numbers);
        transition accept;
    }
    state wide {
        packet.extract(hdr.wide);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control IngressPipe(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    action add()          { hdr.words.result = hdr.words.a + hdr.words.b; }
    action subtract()     { hdr.words.result = hdr.words.a - hdr.words.b; }
    action multiply()     { hdr.words.result = hdr.words.a * hdr.words.b; }
    action add_sat()      { hdr.words.result = hdr.words.a |+| hdr.words.b; }
    action subtract_sat() { hdr.words.result = hdr.words.a |-| hdr.words.b; }
    action shift_left()   { hdr.words.result = hdr.words.a << (bit<8>)hdr.words.b; }
    action shift_right()  { hdr.words.result = hdr.words.a >> (bit<8>)hdr.words.b; }
    action invert()       { hdr.words.result = ~hdr.words.a; }
    action negate()       { hdr.words.result = -hdr.words.a; }
    action slice()        { hdr.words.result[23:8] = hdr.words.a[15:0]; }
    action join()         { hdr.words.result = hdr.words.a[7:0] ++ hdr.words.b[31:8]; }
    action less()         { hdr.words.result = hdr.words.a < hdr.words.b ? 32w1 : 0; }
    action bits()         { hdr.words.result = hdr.words.a & hdr.words.b | 1 ^ hdr.words.a; }

    action s_add()          { hdr.numbers.result = hdr.numbers.a + hdr.numbers.b; }
    action s_subtract()     { hdr.numbers.result = hdr.numbers.a - hdr.numbers.b; }
    action s_multiply()     { hdr.numbers.result = hdr.numbers.a * hdr.numbers.b; }
    action s_add_sat()      { hdr.numbers.result = hdr.numbers.a |+| hdr.numbers.b; }
    action s_subtract_sat() { hdr.numbers.result = hdr.numbers.a |-| hdr.numbers.b; }
    action s_shift_right()  { hdr.numbers.result = hdr.numbers.a >> 4; }
    action s_less()         { hdr.numbers.result = hdr.numbers.a < hdr.numbers.b ? 32s1 : 0; }
    action s_narrow()       { hdr.numbers.odd = (int<13>)hdr.numbers.a; }
    action s_widen()        { hdr.numbers.result = (int<32>)hdr.numbers.odd; }
    action s_odd_sat()      { hdr.numbers.odd = hdr.numbers.odd |+| 13s1; }

    action w_add()      { hdr.wide.a = hdr.wide.a + hdr.wide.b; }
    action w_subtract() { hdr.wide.a = hdr.wide.a - hdr.wide.b; }
    action w_add_sat()  { hdr.wide.a = hdr.wide.a |+| hdr.wide.b; }
    action w_shift()    { hdr.wide.a = hdr.wide.a << 255; }

    table choose {
        key = { hdr.operation.code: exact; }
        actions = {
            add; subtract; multiply; add_sat; subtract_sat; shift_left; shift_right; invert;
            negate; slice; join; less; bits;
            s_add; s_subtract; s_multiply; s_add_sat; s_subtract_sat; s_shift_right; s_less;
            s_narrow; s_widen; s_odd_sat;
            w_add; w_subtract; w_add_sat; w_shift;
            NoAction;
        }
        const default_action = NoAction();
        const entries = {
            0x00: add(); 0x01: subtract(); 0x02: multiply(); 0x03: add_sat();
            0x04: subtract_sat(); 0x05: shift_left(); 0x06: shift_right(); 0x07: invert();
            0x08: negate(); 0x09: slice(); 0x0A: join(); 0x0B: less(); 0x0C: bits();
            0x40: s_add(); 0x41: s_subtract(); 0x42: s_multiply(); 0x43: s_add_sat();
            0x44: s_subtract_sat(); 0x45: s_shift_right(); 0x46: s_less(); 0x47: s_narrow();
            0x48: s_widen(); 0x49: s_odd_sat();
            0x80: w_add(); 0x81: w_subtract(); 0x82: w_add_sat(); 0x83: w_shift();
        }
    }

    apply {
        standard_metadata.egress_spec = 1;
        choose.apply();
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
    apply { packet.emit(hdr); }
}

V1Switch(Parse(), Verify(), IngressPipe(), EgressPipe(), Update(), Deparse()) main;
