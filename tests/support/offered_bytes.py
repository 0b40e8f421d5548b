"""Reads what a run offers over TCP (net/transport/byte_offer.hpp), for the stand-in of
vLLM, in plain Python."""
import socket
import ssl


def read_offer(tcp, rank, most=None):
    """The offered bytes, or the first `most` of them."""
    with socket.create_connection((tcp["host"], tcp["port"]), 10) as stream:
        stream.settimeout(30)
        if tcp["certificate"]:
            trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            trust.check_hostname = False
            trust.load_verify_locations(cadata=tcp["certificate"])
            stream = trust.wrap_socket(stream)
        stream.sendall(f"{tcp['token']}{rank:08x}".encode())
        data, wanted = bytearray(), tcp["bytes"] if most is None else most
        while len(data) < wanted:
            part = stream.recv(min(1 << 20, wanted - len(data)))
            if not part:
                raise ValueError(f"the weights ended after {len(data)} of "
                                 f"{tcp['bytes']} bytes")
            data += part
        stream.close()  # one of TLS is another object
        return bytes(data)
