CREATE EXTENSION IF NOT EXISTS ltree;--> statement-breakpoint
CREATE EXTENSION IF NOT EXISTS pg_trgm;--> statement-breakpoint
CREATE SCHEMA "catalog";
--> statement-breakpoint
CREATE TABLE "catalog"."audit" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "catalog"."audit_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"at" timestamp with time zone NOT NULL,
	"actor" text NOT NULL,
	"on_behalf_of" text,
	"roles" text[] DEFAULT '{}' NOT NULL,
	"action" text NOT NULL,
	"object" text NOT NULL,
	"outcome" text NOT NULL,
	"reason" text,
	"before_hash" text,
	"after_hash" text,
	"request_id" text,
	"command_id" uuid,
	"body" text NOT NULL,
	"mac" text NOT NULL,
	"seal_seq" bigint,
	"prev_hash" text,
	"seal_hash" text,
	CONSTRAINT "audit_seal_seq_unique" UNIQUE("seal_seq")
);
--> statement-breakpoint
CREATE TABLE "catalog"."capability_def" (
	"id" smallint NOT NULL,
	"capability_key" text collate "C" NOT NULL,
	"version" text NOT NULL,
	"checksum" text NOT NULL,
	"retired" boolean DEFAULT false NOT NULL,
	"document" jsonb NOT NULL,
	CONSTRAINT "capability_def_id_version_pk" PRIMARY KEY("id","version"),
	CONSTRAINT "capability_def_capability_key_version_unique" UNIQUE("capability_key","version")
);
--> statement-breakpoint
CREATE TABLE "catalog"."command_log" (
	"command_id" uuid PRIMARY KEY NOT NULL,
	"scope" text NOT NULL,
	"idempotency_key" text NOT NULL,
	"fingerprint" "bytea" NOT NULL,
	"resource_id" text,
	"status" integer,
	"headers" jsonb,
	"body" "bytea",
	"created_at" timestamp with time zone NOT NULL,
	"retain_until" timestamp with time zone NOT NULL,
	CONSTRAINT "command_log_scope_key" UNIQUE("scope","idempotency_key")
);
--> statement-breakpoint
CREATE TABLE "catalog"."dead_letter" (
	"consumer" text NOT NULL,
	"event_id" uuid NOT NULL,
	"agg_type" text,
	"agg_id" text,
	"agg_version" bigint,
	"error" text NOT NULL,
	"tries" integer NOT NULL,
	"parked_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"released_at" timestamp with time zone,
	CONSTRAINT "dead_letter_consumer_event_id_pk" PRIMARY KEY("consumer","event_id")
);
--> statement-breakpoint
CREATE TABLE "catalog"."evidence_ref" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "catalog"."evidence_ref_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"rid" bigint NOT NULL,
	"command_id" uuid NOT NULL,
	"operation_id" uuid,
	"at" timestamp with time zone NOT NULL,
	"ref" jsonb DEFAULT '{}' NOT NULL
);
--> statement-breakpoint
CREATE TABLE "catalog"."inbox" (
	"consumer" text NOT NULL,
	"event_id" uuid NOT NULL,
	"received_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "inbox_consumer_event_id_pk" PRIMARY KEY("consumer","event_id")
);
--> statement-breakpoint
CREATE TABLE "catalog"."observation_latest" (
	"rid" bigint NOT NULL,
	"source" text NOT NULL,
	"check_key" text NOT NULL,
	"status" text NOT NULL,
	"observed_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"swept" boolean DEFAULT false NOT NULL,
	"summary" text,
	"attributes" jsonb DEFAULT '{}' NOT NULL,
	"evidence_refs" jsonb DEFAULT '[]' NOT NULL,
	"command_id" uuid NOT NULL,
	CONSTRAINT "observation_latest_rid_source_check_key_pk" PRIMARY KEY("rid","source","check_key")
);
--> statement-breakpoint
CREATE TABLE "catalog"."outbox" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "catalog"."outbox_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"event_id" uuid NOT NULL,
	"agg_type" text NOT NULL,
	"agg_id" text NOT NULL,
	"agg_version" bigint NOT NULL,
	"type" text NOT NULL,
	"schema_version" integer DEFAULT 1 NOT NULL,
	"payload" jsonb NOT NULL,
	"request_id" text,
	"trace" text,
	"occurred_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"pub_seq" bigint,
	"js_seq" bigint,
	"published_at" timestamp with time zone,
	"parked" text,
	CONSTRAINT "outbox_event_id_unique" UNIQUE("event_id"),
	CONSTRAINT "outbox_pub_seq_unique" UNIQUE("pub_seq"),
	CONSTRAINT "outbox_agg_type_agg_id_agg_version_unique" UNIQUE("agg_type","agg_id","agg_version")
);
--> statement-breakpoint
CREATE TABLE "catalog"."pack" (
	"pack" text NOT NULL,
	"version" text NOT NULL,
	"checksum" text NOT NULL,
	"document" jsonb DEFAULT '{}' NOT NULL,
	"load_no" integer DEFAULT 0 NOT NULL,
	"loaded_at" timestamp with time zone NOT NULL,
	CONSTRAINT "pack_pack_version_pk" PRIMARY KEY("pack","version")
);
--> statement-breakpoint
CREATE TABLE "catalog"."projection" (
	"name" text PRIMARY KEY NOT NULL,
	"state" text DEFAULT 'live' NOT NULL,
	"pub_seq" bigint DEFAULT 0 NOT NULL,
	"at" timestamp with time zone,
	"code_version" text,
	"hash" text,
	"hash_pub_seq" bigint
);
--> statement-breakpoint
CREATE TABLE "catalog"."projection_version" (
	"consumer" text NOT NULL,
	"agg_type" text NOT NULL,
	"agg_id" text NOT NULL,
	"ver" bigint NOT NULL,
	"held" boolean DEFAULT false NOT NULL,
	CONSTRAINT "projection_version_consumer_agg_type_agg_id_pk" PRIMARY KEY("consumer","agg_type","agg_id")
);
--> statement-breakpoint
CREATE TABLE "catalog"."provider" (
	"provider_id" text collate "C" PRIMARY KEY NOT NULL,
	"rid" bigint NOT NULL,
	"capability_id" smallint NOT NULL,
	"version" text NOT NULL,
	"attributes" jsonb DEFAULT '{}' NOT NULL,
	"capacity" jsonb,
	"priority" integer DEFAULT 100 NOT NULL,
	"expires_at" timestamp with time zone,
	"withdrawn_at" timestamp with time zone,
	"last_command_id" uuid,
	"rev" integer DEFAULT 1 NOT NULL
);
--> statement-breakpoint
CREATE TABLE "catalog"."relationship" (
	"src" bigint NOT NULL,
	"reltype_id" smallint NOT NULL,
	"dst" bigint NOT NULL,
	"rev" integer DEFAULT 1 NOT NULL,
	"properties" jsonb DEFAULT '{}' NOT NULL,
	"valid_from" timestamp with time zone NOT NULL,
	"command_id" uuid,
	"operation_id" uuid,
	"rel_no" bigint GENERATED ALWAYS AS IDENTITY (sequence name "catalog"."relationship_rel_no_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	CONSTRAINT "relationship_src_reltype_id_dst_pk" PRIMARY KEY("src","reltype_id","dst"),
	CONSTRAINT "relationship_rel_no_unique" UNIQUE("rel_no")
);
--> statement-breakpoint
CREATE TABLE "catalog"."relationship_history" (
	"src" bigint NOT NULL,
	"reltype_id" smallint NOT NULL,
	"dst" bigint NOT NULL,
	"rev" integer DEFAULT 1 NOT NULL,
	"properties" jsonb DEFAULT '{}' NOT NULL,
	"valid_from" timestamp with time zone NOT NULL,
	"command_id" uuid,
	"operation_id" uuid,
	"rel_no" bigint NOT NULL,
	"valid_to" timestamp with time zone NOT NULL,
	CONSTRAINT "relationship_history_rel_no_rev_pk" PRIMARY KEY("rel_no","rev")
);
--> statement-breakpoint
CREATE TABLE "catalog"."relationship_type" (
	"id" smallint PRIMARY KEY NOT NULL,
	"type_key" text collate "C" NOT NULL,
	"checksum" text NOT NULL,
	"retired" boolean DEFAULT false NOT NULL,
	"document" jsonb NOT NULL,
	CONSTRAINT "relationship_type_type_key_unique" UNIQUE("type_key")
);
--> statement-breakpoint
CREATE TABLE "catalog"."relay_state" (
	"name" text PRIMARY KEY NOT NULL,
	"epoch" bigint DEFAULT 0 NOT NULL,
	"next" bigint DEFAULT 1 NOT NULL,
	"stream_created" text,
	"js_last_seq" bigint
);
--> statement-breakpoint
CREATE TABLE "catalog"."resource" (
	"rid" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "catalog"."resource_rid_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"resource_id" text collate "C" NOT NULL,
	"type_id" smallint NOT NULL,
	"type_version" integer NOT NULL,
	"name" text collate "C" NOT NULL,
	"display_name" text NOT NULL,
	"owner" text,
	"labels" jsonb DEFAULT '{}' NOT NULL,
	"annotations" jsonb DEFAULT '{}' NOT NULL,
	"parent_rid" bigint,
	"path" "ltree" NOT NULL,
	"desired_state" jsonb DEFAULT '{}' NOT NULL,
	"identity_hash" "bytea",
	"is_open" boolean DEFAULT true NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"created_by" text NOT NULL,
	CONSTRAINT "resource_resource_id_unique" UNIQUE("resource_id")
);
--> statement-breakpoint
CREATE TABLE "catalog"."resource_operation" (
	"rid" bigint NOT NULL,
	"operation_id" uuid NOT NULL,
	"command_id" uuid NOT NULL,
	"version_from" integer NOT NULL,
	"version_to" integer NOT NULL,
	"at" timestamp with time zone NOT NULL,
	CONSTRAINT "resource_operation_command_id_rid_pk" PRIMARY KEY("command_id","rid")
);
--> statement-breakpoint
CREATE TABLE "catalog"."resource_state" (
	"rid" bigint PRIMARY KEY NOT NULL,
	"version" integer NOT NULL,
	"generation" integer NOT NULL,
	"observed_generation" integer NOT NULL,
	"lifecycle_status" text NOT NULL,
	"observed_state" jsonb DEFAULT '{}' NOT NULL,
	"health_status" text DEFAULT 'unknown' NOT NULL,
	"health_reason" text DEFAULT 'never_observed' NOT NULL,
	"health_expires_at" timestamp with time zone,
	"health_revision" integer DEFAULT 0 NOT NULL,
	"capability_revision" integer DEFAULT 0 NOT NULL,
	"drift_status" text NOT NULL,
	"drift_paths" jsonb DEFAULT '[]' NOT NULL,
	"lifecycle_at" timestamp with time zone NOT NULL,
	"drift_at" timestamp with time zone NOT NULL,
	"health_at" timestamp with time zone NOT NULL,
	"last_operation_id" uuid,
	"last_command_id" uuid,
	"last_operation_at" timestamp with time zone,
	"updated_at" timestamp with time zone NOT NULL,
	"updated_by" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "catalog"."revision" (
	"rid" bigint NOT NULL,
	"version" integer NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"kind" text NOT NULL,
	"doc" jsonb DEFAULT '{}' NOT NULL,
	"changed_paths" jsonb NOT NULL,
	"lifecycle_status" text NOT NULL,
	"actor" text NOT NULL,
	"command_id" uuid,
	"operation_id" uuid,
	CONSTRAINT "revision_rid_version_pk" PRIMARY KEY("rid","version")
) PARTITION BY HASH ("rid");
--> statement-breakpoint
CREATE TABLE "catalog"."revision_00" PARTITION OF "catalog"."revision" FOR VALUES WITH (MODULUS 16, REMAINDER 0);--> statement-breakpoint
CREATE TABLE "catalog"."revision_01" PARTITION OF "catalog"."revision" FOR VALUES WITH (MODULUS 16, REMAINDER 1);--> statement-breakpoint
CREATE TABLE "catalog"."revision_02" PARTITION OF "catalog"."revision" FOR VALUES WITH (MODULUS 16, REMAINDER 2);--> statement-breakpoint
CREATE TABLE "catalog"."revision_03" PARTITION OF "catalog"."revision" FOR VALUES WITH (MODULUS 16, REMAINDER 3);--> statement-breakpoint
CREATE TABLE "catalog"."revision_04" PARTITION OF "catalog"."revision" FOR VALUES WITH (MODULUS 16, REMAINDER 4);--> statement-breakpoint
CREATE TABLE "catalog"."revision_05" PARTITION OF "catalog"."revision" FOR VALUES WITH (MODULUS 16, REMAINDER 5);--> statement-breakpoint
CREATE TABLE "catalog"."revision_06" PARTITION OF "catalog"."revision" FOR VALUES WITH (MODULUS 16, REMAINDER 6);--> statement-breakpoint
CREATE TABLE "catalog"."revision_07" PARTITION OF "catalog"."revision" FOR VALUES WITH (MODULUS 16, REMAINDER 7);--> statement-breakpoint
CREATE TABLE "catalog"."revision_08" PARTITION OF "catalog"."revision" FOR VALUES WITH (MODULUS 16, REMAINDER 8);--> statement-breakpoint
CREATE TABLE "catalog"."revision_09" PARTITION OF "catalog"."revision" FOR VALUES WITH (MODULUS 16, REMAINDER 9);--> statement-breakpoint
CREATE TABLE "catalog"."revision_10" PARTITION OF "catalog"."revision" FOR VALUES WITH (MODULUS 16, REMAINDER 10);--> statement-breakpoint
CREATE TABLE "catalog"."revision_11" PARTITION OF "catalog"."revision" FOR VALUES WITH (MODULUS 16, REMAINDER 11);--> statement-breakpoint
CREATE TABLE "catalog"."revision_12" PARTITION OF "catalog"."revision" FOR VALUES WITH (MODULUS 16, REMAINDER 12);--> statement-breakpoint
CREATE TABLE "catalog"."revision_13" PARTITION OF "catalog"."revision" FOR VALUES WITH (MODULUS 16, REMAINDER 13);--> statement-breakpoint
CREATE TABLE "catalog"."revision_14" PARTITION OF "catalog"."revision" FOR VALUES WITH (MODULUS 16, REMAINDER 14);--> statement-breakpoint
CREATE TABLE "catalog"."revision_15" PARTITION OF "catalog"."revision" FOR VALUES WITH (MODULUS 16, REMAINDER 15);
--> statement-breakpoint
CREATE TABLE "catalog"."rm_resource_operation" (
	"rid" bigint NOT NULL,
	"operation_id" uuid NOT NULL,
	"kind" text NOT NULL,
	"title" text NOT NULL,
	"status" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"started_at" timestamp with time zone,
	"ended_at" timestamp with time zone,
	CONSTRAINT "rm_resource_operation_rid_operation_id_pk" PRIMARY KEY("rid","operation_id")
);
--> statement-breakpoint
CREATE TABLE "catalog"."type" (
	"id" smallint NOT NULL,
	"type_key" text collate "C" NOT NULL,
	"version" integer NOT NULL,
	"checksum" text NOT NULL,
	"retired" boolean DEFAULT false NOT NULL,
	"document" jsonb NOT NULL,
	CONSTRAINT "type_id_version_pk" PRIMARY KEY("id","version"),
	CONSTRAINT "type_type_key_version_unique" UNIQUE("type_key","version")
);
--> statement-breakpoint
CREATE INDEX "audit_unsealed" ON "catalog"."audit" USING btree ("id") WHERE seal_seq is null;--> statement-breakpoint
CREATE INDEX "audit_actor" ON "catalog"."audit" USING btree ("actor","id");--> statement-breakpoint
CREATE INDEX "audit_object" ON "catalog"."audit" USING btree ("object","id");--> statement-breakpoint
CREATE INDEX "command_log_retain" ON "catalog"."command_log" USING brin ("retain_until");--> statement-breakpoint
CREATE INDEX "evidence_ref_at" ON "catalog"."evidence_ref" USING btree ("rid","at");--> statement-breakpoint
CREATE INDEX "evidence_ref_operation" ON "catalog"."evidence_ref" USING btree ("operation_id");--> statement-breakpoint
CREATE INDEX "observation_expires" ON "catalog"."observation_latest" USING btree ("expires_at") WHERE not swept;--> statement-breakpoint
CREATE INDEX "outbox_id_index" ON "catalog"."outbox" USING btree ("id") WHERE pub_seq is null;--> statement-breakpoint
CREATE INDEX "outbox_pub_seq_index" ON "catalog"."outbox" USING btree ("pub_seq") WHERE published_at is null and pub_seq is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "provider_open" ON "catalog"."provider" USING btree ("rid","capability_id","version") WHERE withdrawn_at is null;--> statement-breakpoint
CREATE INDEX "provider_capability" ON "catalog"."provider" USING btree ("capability_id","rid");--> statement-breakpoint
CREATE INDEX "provider_expires" ON "catalog"."provider" USING btree ("expires_at") WHERE withdrawn_at is null;--> statement-breakpoint
CREATE UNIQUE INDEX "relationship_in" ON "catalog"."relationship" USING btree ("dst","reltype_id","src");--> statement-breakpoint
CREATE INDEX "relationship_src_from" ON "catalog"."relationship" USING btree ("src","valid_from");--> statement-breakpoint
CREATE INDEX "relationship_dst_from" ON "catalog"."relationship" USING btree ("dst","valid_from");--> statement-breakpoint
CREATE INDEX "relationship_history_src" ON "catalog"."relationship_history" USING btree ("src","valid_from");--> statement-breakpoint
CREATE INDEX "relationship_history_dst" ON "catalog"."relationship_history" USING btree ("dst","valid_from");--> statement-breakpoint
CREATE INDEX "relationship_history_to" ON "catalog"."relationship_history" USING btree ("valid_to");--> statement-breakpoint
CREATE UNIQUE INDEX "resource_name_key" ON "catalog"."resource" USING btree ("type_id","parent_rid","name") NULLS NOT DISTINCT WHERE is_open;--> statement-breakpoint
CREATE UNIQUE INDEX "resource_identity_key" ON "catalog"."resource" USING btree ("type_id","identity_hash") WHERE is_open;--> statement-breakpoint
CREATE INDEX "resource_path_key" ON "catalog"."resource" USING btree ("path");--> statement-breakpoint
CREATE INDEX "resource_path_gist" ON "catalog"."resource" USING gist (path gist_ltree_ops(siglen=32));--> statement-breakpoint
CREATE INDEX "resource_desired_gin" ON "catalog"."resource" USING gin (desired_state jsonb_path_ops);--> statement-breakpoint
CREATE INDEX "resource_labels_gin" ON "catalog"."resource" USING gin (labels jsonb_path_ops);--> statement-breakpoint
CREATE INDEX "resource_name_trgm" ON "catalog"."resource" USING gin (name gin_trgm_ops);--> statement-breakpoint
CREATE INDEX "resource_name" ON "catalog"."resource" USING btree ("name","rid");--> statement-breakpoint
CREATE INDEX "resource_type_name" ON "catalog"."resource" USING btree ("type_id","name","rid");--> statement-breakpoint
CREATE INDEX "resource_parent" ON "catalog"."resource" USING btree ("parent_rid","name");--> statement-breakpoint
CREATE INDEX "resource_operation_at" ON "catalog"."resource_operation" USING btree ("rid","at");--> statement-breakpoint
CREATE INDEX "resource_operation_operation" ON "catalog"."resource_operation" USING btree ("operation_id");--> statement-breakpoint
CREATE INDEX "revision_at" ON "catalog"."revision" USING btree ("rid","at");--> statement-breakpoint
CREATE INDEX "rm_resource_operation_at" ON "catalog"."rm_resource_operation" USING btree ("rid","created_at");--> statement-breakpoint
CREATE INDEX "rm_resource_operation_operation" ON "catalog"."rm_resource_operation" USING btree ("operation_id");
--> statement-breakpoint
ALTER TABLE "catalog"."resource_state" SET (fillfactor = 70);--> statement-breakpoint
ALTER TABLE "catalog"."command_log" SET (fillfactor = 80);--> statement-breakpoint
ALTER TABLE "catalog"."outbox" SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01);
