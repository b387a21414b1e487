{{- define "parley.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 49 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}{{- .Release.Name | trunc 49 | trimSuffix "-" -}}
{{- else -}}{{- printf "%s-%s" .Release.Name $name | trunc 49 | trimSuffix "-" -}}{{- end -}}
{{- end -}}
{{- end -}}

{{- define "parley.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "parley.labels" -}}
{{ include "parley.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "parley.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}{{ .repository }}@{{ .digest }}{{- else -}}{{ .repository }}:{{ default $.Chart.AppVersion .tag }}{{- end -}}
{{- end -}}
{{- end -}}

{{- define "parley.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}{{ default (include "parley.fullname" .) .Values.serviceAccount.name }}
{{- else -}}{{ default "default" .Values.serviceAccount.name }}{{- end -}}
{{- end -}}

{{- /* The listeners that are on, with their names, as YAML. */ -}}
{{- define "parley.listeners" -}}
{{- range $task := list "chat" "speech" "transcription" -}}
{{- with index $.Values.listeners $task -}}
{{- if .enabled }}
- {task: {{ $task }}, port: {{ .port }}, service: {{ include "parley.fullname" $ }}-{{ $task }}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The file of settings: flags by their names. */ -}}
{{- define "parley.settings" -}}
{{- $settings := deepCopy .Values.settings -}}
{{- range $task := list "chat" "speech" "transcription" -}}
{{- with index $.Values.listeners $task -}}
{{- $_ := set $settings (eq $task "chat" | ternary "port" (printf "%s-port" $task)) .port -}}
{{- if not .enabled -}}{{- $_ := set $settings (printf "%s-model" $task) "none" -}}
{{- else if .model -}}{{- $_ := set $settings (printf "%s-model" $task) .model -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- $_ := set $settings "drain-timeout" .Values.drain.timeoutSeconds -}}
{{- $adapter := default (get (dict "cpu" "llvmpipe" "nvidia" "NVIDIA") .Values.accelerator.kind) .Values.accelerator.adapter -}}
{{- $_ := set $settings "adapter" $adapter -}}
{{- if and .Values.gateway.enabled .Values.gateway.hostnames -}}
{{- /* A gateway passes the public name on, which the listeners must know. */ -}}
{{- $_ := set $settings "allowed-hosts" (concat (get $settings "allowed-hosts" | default list) .Values.gateway.hostnames | uniq) -}}
{{- end -}}
{{- if .Values.secrets.tls -}}
{{- $_ := set $settings "tls-cert" "/etc/parley-tls/tls.crt" -}}
{{- $_ := set $settings "tls-key" "/etc/parley-tls/tls.key" -}}
{{- end -}}
{{- $settings | toPrettyJson -}}
{{- end -}}

{{- /* How the listeners are asked. Their certificate names hosts, and a pod is asked by its address, so those who check it must be told not to. */ -}}
{{- define "parley.scheme" -}}
{{- if or .Values.secrets.tls (hasKey .Values.settings "tls-cert") -}}https{{- else -}}http{{- end -}}
{{- end -}}

{{- define "parley.check" -}}
{{- if hasKey .Values.settings "tls-client-ca" -}}
{{- fail "settings.tls-client-ca: Kubernetes' probes have no certificate to show, so no pod would ever be ready" -}}
{{- end -}}
{{- if and .Values.secrets.tls (or (hasKey .Values.settings "tls-cert") (hasKey .Values.settings "tls-key")) -}}
{{- fail "secrets.tls and settings.tls-cert, tls-key: a certificate comes from one place" -}}
{{- end -}}
{{- $sum := add .Values.drain.preStopSeconds (ceil (get .Values.settings "drain-delay" | default 0)) .Values.drain.timeoutSeconds -}}
{{- if le (int .Values.drain.graceSeconds) (int $sum) -}}
{{- fail (printf "drain.graceSeconds is %v; it must be more than preStopSeconds + drain-delay + timeoutSeconds, which are %v" .Values.drain.graceSeconds $sum) -}}
{{- end -}}
{{- if not (include "parley.listeners" . | fromYamlArray) -}}{{- fail "listeners: at least one must be enabled" -}}{{- end -}}
{{- $ports := list -}}
{{- range include "parley.listeners" . | fromYamlArray -}}{{- $ports = append $ports .port -}}{{- end -}}
{{- if ne (len $ports) (len (uniq $ports)) -}}{{- fail "listeners: each needs a port of its own" -}}{{- end -}}
{{- with .Values.autoscaling -}}
{{- if and .enabled (gt (int .minReplicas) (int .maxReplicas)) -}}{{- fail "autoscaling: minReplicas is more than maxReplicas" -}}{{- end -}}
{{- if and .enabled (lt (int .scaleDownSeconds) (int $.Values.drain.graceSeconds)) -}}{{- fail "autoscaling.scaleDownSeconds must not be less than drain.graceSeconds" -}}{{- end -}}
{{- end -}}
{{- end -}}
