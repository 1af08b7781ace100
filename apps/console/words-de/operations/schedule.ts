import type * as en from '../../words/operations/schedule.ts'
import { count } from '../frame/plural.ts'

/** The German texts for schedules: intents at set times. */
export const schedule: typeof en.schedule = {
  title: 'Zeitpläne',
  what: [
    'Ein Zeitplan legt zu festen Zeiten ein Vorhaben an und plant es.',
    'Es gelten die dann gültigen Rechte der zuständigen Person.',
  ].join(' '),
  empty: 'Noch keine Zeitpläne.',
  how: '„Neu“ wählen oder ausführen: signalbox schedule create -f FILE.',
  caption: 'Zeitpläne, neueste zuerst',
  columns: {
    schedule: 'Zeitplan',
    status: 'Status',
    when: 'Wann',
    next: 'Nächster Lauf',
    last: 'Letzter Lauf',
    by: 'Zuständig',
  },
  on: (type_key: string) => `sobald eine Ressource vom Typ ${type_key} erfüllt:`,
  at: 'einmalig',
  every: (seconds: number) =>
    seconds % 86_400 === 0
      ? count(seconds / 86_400, 'jeden Tag', 'alle {n} Tage')
      : seconds % 3600 === 0
        ? count(seconds / 3600, 'jede Stunde', 'alle {n} Stunden')
        : count(seconds / 60, 'jede Minute', 'alle {n} Minuten'),
  cron: (fields: string, zone: string) => `${fields} (${zone})`,
  webhook: { standard: 'bei signiertem Webhook', forge: 'bei Webhook einer Git-Plattform' },
  plan: 'Plant nur: Eine Person startet jeden Plan.',
  start: 'Startet jeden Plan selbst, bis zu seiner ersten Freigabe.',
  upcoming: 'Nächste Zeiten',
  none: 'Keine.',
  runs: 'Läufe',
  no_runs: 'Noch nicht gelaufen.',
  run_columns: { at: 'Zeit', outcome: 'Ergebnis', leads: 'Führt zu', why: 'Warum' },
  asks: 'Vorhaben',
  hook: {
    title: 'Webhook',
    copy_url: 'URL kopieren',
    copy_secret: 'Geheimnis kopieren',
    signed: {
      standard:
        'Signiert als Standard Webhooks: webhook-id, webhook-timestamp und webhook-signature. Eine Zustellung gilt 5 Minuten und zählt einmal.',
      forge: 'Signiert wie auf Git-Plattformen: X-Hub-Signature-256 über den Inhalt. Derselbe Inhalt zählt einmal.',
    },
    no_secret: 'Ohne Geheimnis wird keine Zustellung angenommen.',
    make: 'Geheimnis erzeugen',
    make_effect: 'Das Geheimnis gehört zum Absender. Er signiert damit jede Zustellung.',
    rotate: 'Geheimnis wechseln',
    rotate_effect: 'Ein neues Geheimnis entsteht. Der Absender braucht es, bevor das alte endet.',
    overlap: 'Das alte Geheimnis endet',
    overlaps: [
      ['86400', 'in 24 Stunden'],
      ['604800', 'in 7 Tagen'],
      ['0', 'sofort'],
    ],
    previous: 'Das vorige Geheimnis endet',
    shown: 'Dieses Geheimnis jetzt beim Absender hinterlegen. Es wird nur einmal gezeigt.',
    deliveries: 'Letzte Zustellungen',
    delivery: { accepted: 'Angenommen', ignored: 'Übergangen' },
    no_deliveries: 'Bisher kam keine Zustellung mit gültiger Signatur.',
  },
  action: { pause: 'Anhalten', resume: 'Fortsetzen', run: 'Jetzt ausführen', end: 'Beenden' },
  effect: {
    pause: 'Kein weiterer Lauf beginnt von selbst. Was läuft, läuft weiter.',
    resume: 'Es geht mit der nächsten Zeit weiter.',
    run: 'Läuft jetzt einmal, zusätzlich zu den festen Zeiten.',
    end: 'Läuft nie wieder. Die bisherigen Läufe bleiben lesbar.',
  },
}
