# Two ranks that meet at MASTER_ADDR over TCP.
import os, socket, time
_peer = None
def init_process_group(kind):
    global _peer
    at = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    if os.environ["RANK"] == "0":
        s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(at); s.listen(1); _peer = s.accept()[0]
        return
    end = time.time() + 30
    while not _peer:
        try: _peer = socket.create_connection(at, 5)
        except OSError:
            if time.time() > end: raise
            time.sleep(0.1)
def all_reduce(x): _peer.sendall(b"x"); _peer.recv(1)
def destroy_process_group(): _peer.close()
