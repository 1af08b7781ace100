import type * as en from '../../words/operations/patch.ts'
import { count, list } from '../frame/plural.ts'

const from = (groups: string[]): string => (groups.length > 0 ? `aus ${list.format(groups)}` : 'von Freigebenden')

/** The German texts for patches: changes to the graph of a running operation. */
export const patch: typeof en.patch = {
  page: 'Planänderung',
  title: (id: string) => `Planänderung ${id}`,
  caption: 'Planänderungen dieses Vorgangs, neueste zuerst',
  empty: 'Keine Planänderungen vorgeschlagen.',
  propose: 'Planänderung vorschlagen',
  review: 'Planänderung prüfen',
  what_it_is: [
    'Eine Planänderung ergänzt, ändert oder entfernt Schritte, die noch nicht begonnen haben.',
    'Annehmen müssen sie die Stimmberechtigten der betroffenen Freigaben.',
  ].join(' '),
  columns: {
    patch: 'Planänderung',
    status: 'Status',
    change: 'Änderungen',
    by: 'Vorgeschlagen von',
    at: 'Vorgeschlagen',
    base: 'Revision',
  },
  revisions: (base: number, applied: number | null) => (applied === null ? `auf ${base}` : `${base} → ${applied}`),
  counts: (added: number, changed: number, removed: number, gates: number) =>
    [
      ...(added > 0 ? [`${added} hinzugefügt`] : []),
      ...(changed > 0 ? [`${changed} geändert`] : []),
      ...(removed > 0 ? [`${removed} entfernt`] : []),
      ...(gates > 0 ? [count(gates, 'eine Freigabe', '{n} Freigaben')] : []),
    ].join(', '),
  rule: (quorum: number, groups: string[], fourEyes: boolean) => {
    const not = fourEyes ? ', nicht von der vorschlagenden Person' : ''
    return `${count(quorum, 'eine Stimme', '{n} Stimmen')} ${from(groups)}${not}`
  },
  approved: (who: string, at: string) => `Angenommen von ${who}, ${at}; die Engine wendet sie an.`,
  applied: (who: string, at: string, revision: number) =>
    `Angenommen von ${who}, ${at}. Der Graph wurde zu Revision ${revision}.`,
  rejected: (who: string, at: string) => `Abgelehnt von ${who}, ${at}. Der Graph ist unverändert.`,
  withdrawn: (who: string, at: string) => `Zurückgezogen von ${who}, ${at}.`,
  expired: 'Ohne Entscheidung abgelaufen. Der Graph ist unverändert.',
  not_applicable: (why: string) => `Nicht mehr anwendbar: ${why.replace(/\.$/, '')}.`,
  why: {
    base_revision_moved: 'eine andere Planänderung hat den Graphen geändert',
    node_already_dispatched: 'ein betroffener Schritt hat begonnen',
    patch_overlap: 'eine andere Planänderung betrifft einen ihrer Schritte',
    unsound: 'der Graph wäre nicht mehr schlüssig',
    operation_ended: 'der Vorgang ist beendet',
    operation_terminal: 'der Vorgang ist beendet',
    cancelled: 'der Vorgang wurde abgebrochen',
  },
  rebase: 'Dieselben Änderungen am neuen Graphen vorschlagen',
  rebase_none: 'Am neuen Graphen sind diese Änderungen nicht schlüssig. Neue Planänderung vorschlagen.',
  asks: (who: string, at: string, base: number) => `${who}, ${at} · auf Revision ${base}`,
  mends: 'Behebt',
  mended: (state: string, attempts: number) => `${state} nach ${count(attempts, '1 Versuch', '{n} Versuchen')}`,
  holds: 'Hält auf',
  who: (have: number, quorum: number, groups: string[], not: string | null, at: string) =>
    [
      `${have} von ${count(quorum, '1 Stimme', '{n} Stimmen')} ${from(groups)}`,
      ...(not === null ? [] : [`nicht ${not}`]),
      `${at}: läuft ab, aufgehaltene Schritte laufen weiter`,
    ].join(' · '),
  again: (gates: string[]) => `erneut nötig: ${list.format(gates)}`,
  more: (n: number) => count(n, '1 weitere Änderung', '{n} weitere Änderungen'),
  approve_count: (n: number) => count(n, '1 Änderung annehmen', '{n} Änderungen annehmen'),
  result: 'Graph danach',
  drawing: 'Der Graph vorher und nachher: hinzugefügte, geänderte und entfernte Schritte',
  result_note: (base: number) => `Verglichen mit Revision ${base}.`,
  words: {
    add_node: (node: string) => `Schritt „${node}“ hinzufügen`,
    remove_node: (node: string) => `Schritt „${node}“ entfernen`,
    update_node: (node: string, members: string[]) => `${list.format(members)} von „${node}“ ändern`,
    add_dependency: (node: string, on: string) => `„${node}“ von „${on}“ abhängig machen`,
    remove_dependency: (node: string, on: string) => `Abhängigkeit „${node}“ von „${on}“ entfernen`,
    add_gate: (gate: string, guards: string[]) =>
      `Freigabe „${gate}“ vor ${list.format(guards.map((guard) => `„${guard}“`))} hinzufügen`,
    remove_gate: (gate: string) => `Freigabe „${gate}“ entfernen`,
    set_limits: (n: number) =>
      count(n, 'Höchstens einen Schritt gleichzeitig ausführen', 'Höchstens {n} Schritte gleichzeitig ausführen'),
  },
  unknown_change: 'Eine Änderung, die diese Konsole nicht kennt',
  details: 'Einzelheiten',
  added_step: 'Schritt',
  gate: 'Freigabe',
  limit: 'Schritte gleichzeitig',
  risk: 'Risiko des Vorgangs',
  nothing: 'Der Graph ändert sich nicht.',
  held: 'Bis zur Entscheidung aufgehalten',
  rearmed: (gates: string[]) =>
    `${count(gates.length, 'Diese Freigabe ist', 'Diese Freigaben sind')} erneut nötig: ${list.format(gates)}.`,
  required: 'Nötige Stimmen',
  policies: (keys: string[]) => `Verlangt von ${list.format(keys)}.`,
  no_votes: 'Noch keine Stimmen.',
  panel: 'Ihre Entscheidung',
  binding: (digest: string) => `Prüfsumme ${digest}`,
  self: 'Sie haben diese Planänderung vorgeschlagen. Eine andere Person muss sie annehmen.',
  withdraw: 'Zurückziehen',
  still: 'Fehlgeschlagene Schritte laufen erst wieder, wenn ein Operator sie wiederholt:',
  approve_now: (revision: number) => `Ihre Stimme ist die letzte: Der Graph wird sofort zu Revision ${revision}.`,
  approve_more: 'Ihre Stimme zählt; bis zur Änderung sind weitere Stimmen nötig.',
  reject_now: 'Der Graph ändert sich nicht, aufgehaltene Schritte laufen weiter.',
  watch: 'Graph ansehen',

  editor: {
    title: 'Planänderung vorschlagen',
    intro: (title: string, revision: number) => `Für „${title}“, auf Revision ${revision} des Graphen.`,
    moved: (now: number, base: number) =>
      `Der Graph ist jetzt auf Revision ${now}; diese Änderungen gehören zu Revision ${base}.`,
    rebase: (now: number) => `Revision ${now} verwenden`,
    add: 'Änderung hinzufügen',
    kind: 'Änderung',
    node: 'Schritt',
    other: 'Abhängig von',
    gate: 'Freigabe',
    add_button: 'Zur Planänderung hinzufügen',
    has_begun: 'hat begonnen',
    choose: 'Auswählen …',
    kinds: {
      insert_before: 'Schritt einfügen vor',
      change_inputs: 'Eingaben ändern von',
      remove_step: 'Schritt entfernen, Nachbarn verbinden',
      add_gate: 'Freigabe hinzufügen vor',
      remove_gate: 'Freigabe entfernen',
      add_dependency: 'Abhängigkeit hinzufügen',
      remove_dependency: 'Abhängigkeit entfernen',
      set_limits: 'Zahl gleichzeitiger Schritte begrenzen',
    },
    changes: 'Änderungen',
    none: 'Noch keine Änderungen: oben eine auswählen.',
    json: (n: number) => `Änderung ${n} als JSON`,
    edit: 'Als JSON bearbeiten',
    remove: (n: number) => `Änderung ${n} entfernen`,
    not_json: (why: string) => `Kein gültiges JSON: ${why}`,
    not_object: 'Eine Änderung muss ein Objekt mit dem Feld „op“ sein.',
    checking: 'Wird am laufenden Graphen geprüft …',
    before_this: 'Der Graph zeigt die letzte Änderung noch nicht.',
    outcome: 'Wirkung',
    sound: 'Der Graph wäre schlüssig. Die Planänderung ist noch nicht vorgeschlagen.',
    unsound: (n: number) =>
      count(n, 'Das könnte aus einem Grund nicht laufen:', 'Das könnte aus {n} Gründen nicht laufen:'),
    refused: 'Das lässt sich jetzt nicht vorschlagen.',
    at_change: (n: number) => `Änderung ${n}`,
    submit: 'Planänderung vorschlagen',
    confirm_title: 'Diese Planänderung vorschlagen?',
    effect: (held: number) =>
      held === 0
        ? 'Kein Schritt wird aufgehalten.'
        : count(held, 'Ein Schritt wartet auf die Entscheidung.', '{n} Schritte warten auf die Entscheidung.'),
    insert_name: (name: string) => `vor ${name}`,
    question: (name: string) => `Mit ${name} fortfahren?`,
  },
}
