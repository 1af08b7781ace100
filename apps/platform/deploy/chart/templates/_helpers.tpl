{{- define "name" -}}{{ .root.Release.Name }}-{{ .app }}{{- end }}
{{- define "secrets" -}}{{ .Values.secrets.prefix | default .Release.Name }}{{- end }}
{{- define "selector" -}}
app.kubernetes.io/name: signalbox
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .app }}
{{- end }}
{{- define "labels" -}}
{{ include "selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}
{{- define "image" -}}
{{- $image := .root.Values.image }}{{ $tag := .build.tag | default $image.tag | default .root.Chart.AppVersion }}
image: {{ $image.repository }}{{ with .build.digest | default (empty .build.tag | ternary $image.digest "") }}@{{ . }}{{ else }}:{{ $tag }}{{ end }}
imagePullPolicy: {{ $image.pullPolicy }}
{{- end }}
{{- define "ports" -}}[{ port: {{ .internal }} }{{ with .http }}, { port: {{ . }} }{{ end }}]{{- end }}
{{- /* What holds for every pod: it is nobody, has no rights and no token, and cannot write its own files. */}}
{{- define "pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: { type: RuntimeDefault }
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- with .Values.pods }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- define "confined" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end }}
