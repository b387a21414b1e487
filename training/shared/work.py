"""Where the recipes read and write: $PARLEY_DATA (training and test data), $PARLEY_WORK (everything made), the repository's models/."""

import datetime, os, signal, time

TRAINING = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODELS = os.path.join(TRAINING, '../models')
DATA = os.path.abspath(os.environ.get('PARLEY_DATA', os.path.join(TRAINING, '../../shared/data')))
WORK = os.path.abspath(os.environ.get('PARLEY_WORK', 'work'))


def seconds_until(clock):
    """From now to the next time that it is HH:MM (UTC); a plain number is seconds already."""
    if ':' not in clock:
        return float(clock)
    now = datetime.datetime.now(datetime.timezone.utc)
    hour, minute = map(int, clock.split(':'))
    return (now.replace(hour=hour, minute=minute, second=0) - now).total_seconds() % 86400


class Run:
    """A training run: when it ends (`stopping`), and when it is time to save again (`due`). SIGTERM and SIGINT end it cleanly."""

    def __init__(self, seconds=float('inf'), every=120):
        self.start, self.seconds, self.every, self.saved, self.told = time.time(), seconds, every, time.time(), False
        for s in (signal.SIGTERM, signal.SIGINT):
            signal.signal(s, self.tell)

    def tell(self, *_):
        self.told = True

    @property
    def spent(self):
        return time.time() - self.start

    @property
    def stopping(self):
        return self.told or self.spent >= self.seconds

    def due(self):
        """Once in `every` seconds: True."""
        late = time.time() - self.saved > self.every
        self.saved = time.time() if late else self.saved
        return late


def save(state, path):
    """A checkpoint that is there whole or not at all."""
    import torch

    os.makedirs(os.path.dirname(path) or '.', exist_ok=True)
    torch.save(state, path + '.tmp')
    os.replace(path + '.tmp', path)
