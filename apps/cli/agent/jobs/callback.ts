/** Ansible's stdout plugin: one line of JSON per event. A diff comes whole, in parts; the agent truncates it. */
export const CALLBACK = String.raw`
import difflib, json, sys
from ansible.plugins.callback import CallbackBase
from ansible.release import __version__

DOCUMENTATION = '''
name: signalbox
type: stdout
short_description: one line of JSON per event
description: [for the agent]
'''

def lines_of(value):
    if value is None:
        return []
    return (value if isinstance(value, str) else json.dumps(value, indent=1, sort_keys=True, default=str)).splitlines()

def diff_of(part):
    if 'prepared' in part:
        return lines_of(part['prepared'])
    if any(key in part for key in ('src_binary', 'dst_binary', 'src_larger', 'dst_larger')):
        return ['@@ -1 +1 @@', '+(binary or too large for a diff)']
    before, after = lines_of(part.get('before')), lines_of(part.get('after'))
    if len(before) + len(after) > 20000:
        return ['@@ -1 +1 @@'] + ['-' + one for one in before] + ['+' + one for one in after]
    return list(difflib.unified_diff(before, after, n=0, lineterm=''))[2:]

class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = 'stdout'
    CALLBACK_NAME = 'signalbox'

    def say(self, event, **more):
        sys.stdout.write(json.dumps(dict(more, signalbox=event), default=str) + '\n')
        sys.stdout.flush()

    def tell(self, event, result):
        r = result._result
        hidden = 'censored' in r
        words = '' if hidden else r.get('msg') or r.get('stderr') or r.get('skip_reason') or ''
        self.say(event, host=result._host.get_name(), task=result._task.get_name(), id=result._task._uuid, hidden=hidden,
                 fatal=bool(result._task.any_errors_fatal or result._task.run_once),
                 changed=bool(r.get('changed')), message=str(words)[:100000],
                 conditional='false_condition' in r or r.get('skip_reason') == 'Conditional result was False')

    def v2_runner_on_start(self, host, task):
        self.say('start', host=host.get_name(), task=task.get_name(), id=task._uuid)

    def v2_runner_on_ok(self, result):
        self.tell('ok', result)

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self.tell('ignored' if ignore_errors else 'failed', result)

    def v2_runner_on_skipped(self, result):
        self.tell('skipped', result)

    def v2_runner_on_unreachable(self, result):
        self.tell('unreachable', result)

    def v2_on_file_diff(self, result):
        r = result._result
        for one in r.get('results', [r]):
            found = one.get('diff') or []
            for part in found if isinstance(found, list) else [found]:
                lines = diff_of(part)
                for at in range(0, len(lines), 1000):
                    self.say('diff', host=result._host.get_name(), id=result._task._uuid, lines=lines[at:at + 1000])

    def v2_playbook_on_no_hosts_matched(self):
        self.say('none')

    def v2_playbook_on_start(self, playbook):
        self.say('version', version=__version__)
        self.awaited = len(playbook.get_plays())

    plays = set()

    def v2_playbook_on_play_start(self, play):
        if play._uuid not in self.plays:
            self.plays.add(play._uuid)
            found = play.get_variable_manager()._inventory.get_hosts(play.hosts, ignore_restrictions=True)
            for host in found:
                self.say('planned', host=host.get_name())

    def v2_playbook_on_no_hosts_remaining(self):
        self.say('left')

    def v2_playbook_on_stats(self, stats):
        if len(self.plays) < self.awaited:
            self.say('unbegun', count=self.awaited - len(self.plays))
        for host in sorted(stats.processed):
            self.say('stats', host=host, counts=stats.summarize(host))
`
